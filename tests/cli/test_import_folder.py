"""`recollect import DIR`: every session below a folder, whatever else lies there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.cli.runner import PATIENCE, Cli
from tests.cli.session_files import claude_file, gemini_file, only_session, server_file

HELLO = {"role": "user", "content": "Hello"}


def titles(cli: Cli) -> list[str]:
    return sorted(one["title"] for one in cli.ok("sessions", "--all", "--json").json)


def folder_of_sessions(folder: Path) -> Path:
    (folder / "deep" / "er").mkdir(parents=True)
    gemini_file(folder / "deep" / "g.json", ["From Gemini"])
    claude_file(folder / "deep" / "er" / "c.jsonl", ["From Claude"])
    server_file(folder / "s.json", [{"role": "user", "content": "From the server"}])
    return folder


def test_every_session_below_a_folder_is_imported_in_order(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of_sessions(tmp_path / "all")
    done = cli.ok("import", str(folder))
    assert [line.split(":")[0] for line in done.out.splitlines()] == ["c.jsonl", "g.json", "s.json"]
    assert titles(cli) == ["From Claude", "From Gemini", "From the server"]
    assert cli.ok("import", str(folder)).out.count("nothing new") == 3


def test_a_folder_named_like_a_file_is_a_folder(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of_sessions(tmp_path / "all.jsonl")
    (folder / "empty.json").mkdir()
    assert len(cli.ok("import", str(folder), "--json").json) == 3


def test_what_is_not_recognised_is_counted_and_a_few_are_named(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of_sessions(tmp_path / "all")
    for number in range(12):
        (folder / f"package{number:02}.json").write_text('{"name": "x"}' if number else "")
    (folder / "readme.md").write_text("hello")
    few = cli.ok("import", str(folder))
    assert "not recognised: 12 files" in few.err
    assert few.err.count("package") == 10
    assert "readme" not in few.err
    assert cli.ok("import", str(folder), "-v").err.count("package") == 12


def test_one_broken_file_does_not_stop_the_rest_and_the_exit_code_says_so(
    cli: Cli, tmp_path: Path
) -> None:
    folder = folder_of_sessions(tmp_path / "all")
    cli.ok("import", str(folder / "s.json"))
    cli.ok("trash", only_session(cli)["id"])
    done = cli("import", str(folder))
    assert done.code == 1
    assert "in the trash" in done.err
    assert titles(cli) == ["From Claude", "From Gemini"]
    assert sum(one["error"] is not None for one in cli("import", str(folder), "--json").json) == 1


def test_a_folder_without_sessions_is_an_error(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "none"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    for _ in range(2):
        done = cli("import", str(folder))
        assert done.code == 1
        assert "there are no session files" in done.err
        (folder / "a.json").unlink(missing_ok=True)


def test_loops_of_links_pipes_and_hidden_folders_are_left_alone(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of_sessions(tmp_path / "all")
    (folder / "deep" / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "dangling.json").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / ".hidden").mkdir()
    gemini_file(folder / ".hidden" / "h.json", ["Hidden"], id_="other")
    assert len(cli.ok("import", str(folder), "--json").json) == 3
    assert "Hidden" not in titles(cli)


@pytest.mark.parametrize("name", ["pipe.jsonl", "/dev/zero"])
def test_a_pipe_or_a_device_is_refused_at_once(cli: Cli, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if not path.exists():
        os.mkfifo(path)
    refused = cli.process("import", str(path))
    assert refused.code == 1
    assert "not a regular file" in refused.err


def test_a_huge_file_in_a_folder_waits_for_its_name(cli: Cli, tmp_path: Path) -> None:
    folder = folder_of_sessions(tmp_path / "all")
    with (folder / "huge.jsonl").open("wb") as file:
        file.truncate(3 * 1024**3)
    done = cli("import", str(folder))
    assert done.code == 1
    assert "huge.jsonl: it has 3,221,225,472 bytes" in done.err
    assert len(titles(cli)) == 3


def test_a_subagents_file_comes_with_its_session(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    claude_file(folder / "S.jsonl", ["Find it"], id_="S")
    aside = {"content": "look", "isSidechain": True, "agentId": "x7"}
    claude_file(folder / "S" / "subagents" / "agent-x7.jsonl", [aside], id_="S")
    (folder / "S" / "subagents" / "agent-x7.meta.json").write_text("{}")
    done = cli.ok("import", str(folder))
    assert len(done.out.splitlines()) == 2
    assert "  with 1 subagent: " in done.out
    assert done.err == ""


def test_a_file_that_grows_while_it_is_read_is_complete_the_next_time(
    cli: Cli, tmp_path: Path
) -> None:
    file, done = claude_file(tmp_path / "s.jsonl", ["u0"]), threading.Event()
    record = json.loads(file.read_text())
    written = 0

    def grow() -> None:
        nonlocal written
        with file.open("a") as open_file:
            while not done.is_set() or written < 50:
                written += 1
                uuids = {"uuid": f"u{written}", "parentUuid": f"u{written - 1}"}
                open_file.write(json.dumps(record | uuids) + "\n")
                open_file.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        cli.ok("import", str(file))
    finally:
        done.set()
        writer.join(PATIENCE)
    cli.ok("import", str(file))
    shown = cli.ok("show", only_session(cli)["id"], "--json").json["entries"]
    assert sum(one["body"]["kind"] == "message" for one in shown) == written + 1


def test_an_interrupt_keeps_what_was_imported(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for number in range(400):
        gemini_file(folder / f"{number:03}.json", [f"Question {number}"], id_=f"g{number}")
    process = cli.start("import", str(folder))
    try:
        while process.poll() is None and not (cli.store.exists() and titles(cli)):
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    if process.returncode == 130:  # unless all were imported before the signal came
        assert b"the same command goes on from there" in err
    assert len(out.splitlines()) <= len(titles(cli)) <= len(out.splitlines()) + 1
    cli.ok("import", str(folder))
    assert len(titles(cli)) == 400
