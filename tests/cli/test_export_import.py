"""`recollect export` and `recollect import`: files in, files out, nothing lost, nothing twice."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from recollect.testing import call, model, result, user
from tests.cli.runner import Cli

FORMATS = ["gemini", "history-server"]


def conversation(cli: Cli) -> str:
    read = call("read_file", path="a.py")
    items = [user("Why does 限流 fail?"), model("Let me look.", read), result(read, "print(1)")]
    return cli.session([*items, model("Because.")])[0].id


@pytest.mark.parametrize("to", FORMATS)
def test_an_export_is_a_private_file_named_as_the_other_program_names_it(cli: Cli, to: str) -> None:
    done = cli.ok("export", conversation(cli), "--to", to)
    file = cli.project / done.out.strip()
    assert file.name.startswith("session")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_bytes())["messages"]
    assert [f.name for f in cli.project.iterdir()] == [file.name]


@pytest.mark.parametrize("to", FORMATS)
def test_an_export_imported_twice_adds_nothing_the_second_time_and_says_so(
    cli: Cli, to: str, tmp_path: Path
) -> None:
    session = conversation(cli)
    file = tmp_path / "file.json"
    cli.ok("export", session, "--to", to, "-o", str(file))
    elsewhere = ["--store", str(tmp_path / "new" / "other.db")]
    first = cli.ok("import", str(file), *elsewhere)
    assert "added" in first.out
    second = cli.ok("import", str(file), *elsewhere)
    assert "file.json: nothing new" in second.out
    (found,) = cli.ok("sessions", "--json", *elsewhere).json
    shown = cli.ok("show", found["id"], *elsewhere).out
    for word in ("Why does 限流 fail?", 'read_file(path="a.py")', "print(1)", "Because."):
        assert word in shown


def test_a_dash_writes_the_file_to_stdout(cli: Cli) -> None:
    done = cli.ok("export", conversation(cli), "--to", "gemini", "-o", "-")
    assert done.json["messages"]
    assert list(cli.project.iterdir()) == []


def test_a_directory_takes_the_file_under_its_own_name(cli: Cli) -> None:
    (cli.project / "out").mkdir()
    done = cli.ok("export", conversation(cli), "--to", "gemini", "-o", "out")
    assert (cli.project / done.out.strip()).parent.name == "out"


def test_another_file_is_replaced_only_by_force(cli: Cli) -> None:
    session, file = conversation(cli), cli.project / "mine.json"
    file.write_text("my notes")
    export = ["export", session, "--to", "gemini", "-o", "mine.json"]
    refused = cli(*export)
    assert refused.code == 1
    assert "--force" in refused.err
    assert len(refused.err.splitlines()) == 1
    assert file.read_text() == "my notes"
    cli.ok(*export, "--force")
    assert json.loads(file.read_bytes())["messages"]
    assert "already has this content" in cli.ok(*export).err
    assert [f.name for f in cli.project.iterdir()] == ["mine.json"]


def test_a_device_is_written_to_and_stays_a_device(cli: Cli) -> None:
    cli.ok("export", conversation(cli), "--to", "gemini", "-o", "/dev/null", "--force")
    assert Path("/dev/null").is_char_device()


def test_a_folder_that_is_not_there_is_one_clear_sentence(cli: Cli) -> None:
    refused = cli("export", conversation(cli), "--to", "gemini", "-o", "no/such/file.json")
    assert refused.code == 1
    assert refused.err.startswith("recollect: ")
    assert "No such file or directory" in refused.err
    assert len(refused.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [("empty.json", b""), ("noise.json", b"\x00\xff\x13"), ("other.json", b'{"a": 1}')],
)
def test_an_invalid_file_is_refused_and_the_others_are_imported(
    cli: Cli, name: str, content: bytes
) -> None:
    cli.ok("export", conversation(cli), "--to", "gemini", "-o", "good.json")
    (cli.project / name).write_bytes(content)
    elsewhere = ["--store", str(cli.project / "new.db")]
    done = cli("import", name, "missing.json", "good.json", *elsewhere)
    assert done.code == 1
    assert f"recollect: cannot import {name}" in done.err
    assert "missing.json" in done.err
    assert "good.json: " in done.out
    assert len(cli.ok("sessions", "--json", *elsewhere).json) == 1


def test_import_as_json_has_the_outcome_of_each_file(cli: Cli) -> None:
    cli.ok("export", conversation(cli), "--to", "gemini", "-o", "good.json")
    done = cli("import", "good.json", "missing.json", "--json", "--store", "new.db")
    good, missing = done.json
    assert done.code == 1
    assert good["file"] == "good.json"
    assert good["error"] is None
    assert good["added"] > 0
    assert "missing.json" in missing["error"]


def test_unreadable_lines_are_counted_and_the_first_reasons_printed(cli: Cli) -> None:
    header = {"sessionId": "s", "projectHash": "h", "startTime": "2026-11-01T10:00:00Z"}
    said = {"id": "m1", "timestamp": "2026-11-01T10:00:01Z", "type": "user", "content": "hello"}
    lines = [json.dumps(header), json.dumps(said), *["{broken"] * 9]
    (cli.project / "cut.jsonl").write_text("\n".join(lines))
    done = cli.ok("import", "cut.jsonl")
    assert "problem" in done.out
    assert "recollect: warning: cut.jsonl" in done.err
    assert len(done.err.splitlines()) <= 7
    assert "hello" in cli.ok("sessions").out


def test_two_sessions_of_one_minute_get_two_files(cli: Cli, tmp_path: Path) -> None:
    ids = [conversation(cli) for _ in range(2)]
    for session in ids:
        cli.ok("export", session, "--to", "gemini", "-o", str(tmp_path))
    told = [json.loads(file.read_bytes())["sessionId"] for file in tmp_path.glob("session-*.json")]
    assert sorted(told) == sorted(ids)


def test_importing_a_session_says_how_many_subagents_came_along(cli: Cli) -> None:
    def record(uuid: str, parent: str | None, text: str, **more: object) -> str:
        message = {"role": "user", "content": text}
        kind = {"type": "user", "sessionId": "S", "timestamp": "2026-11-01T10:00:00Z"}
        return json.dumps({**kind, "uuid": uuid, "parentUuid": parent, "message": message, **more})

    (cli.project / "S.jsonl").write_text(record("u1", None, "Find it"))
    inside = cli.project / "S" / "subagents"
    inside.mkdir(parents=True)
    aside = record("s1", None, "look", isSidechain=True, agentId="x7")
    (inside / "agent-x7.jsonl").write_text(f"{aside}\n{{torn")
    (inside / "agent-bad.jsonl").write_text("nothing")
    done = cli.ok("import", "S.jsonl")
    assert "  with 1 subagent: 4 entries added" in done.out.splitlines()
    assert "agent-x7.jsonl, line 2" in done.err
    assert "agent-bad.jsonl" in done.err
    assert "Agent: look (subagent of Find it)" in cli.ok("sessions").out
    assert "  with 1 subagent: nothing new" in cli.ok("import", "S.jsonl").out.splitlines()
    (told,) = cli.ok("import", "S.jsonl", "--json").json
    assert [each["name"] for each in told["subagents"]] == ["agent-x7.jsonl"]


def test_an_imported_session_belongs_to_the_folder_it_names_and_keeps_its_id(
    cli: Cli, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    id_ = "258c7280-ae70-4798-800f-63464d01a85d"
    shared = {"sessionId": id_, "cwd": str(elsewhere), "timestamp": "2026-11-01T10:00:00Z"}
    said = {"role": "user", "content": "Where is x?"}
    record = {"type": "user", "uuid": "u1", "parentUuid": None, "message": said, **shared}
    file = tmp_path / f"{id_}.jsonl"
    file.write_text(json.dumps(record) + "\n")
    assert "(of ~/elsewhere)" in cli.ok("import", str(file)).out
    assert cli.ok("sessions", "--json").json == []
    assert len(cli.ok("sessions", "--json", cwd=elsewhere).json) == 1
    assert "Where is x?" in cli.ok("show", id_).out
    assert "Where is x?" in cli.ok("show", "last", cwd=elsewhere).out
