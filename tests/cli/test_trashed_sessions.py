"""A session in the trash is read, not continued; and its last use never moves by an import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recollect.testing import model, user
from tests.cli.runner import Cli
from tests.cli.session_files import gemini_file, only_session, server_file

YEAR = 365 * 24 * 3_600_000


@pytest.mark.parametrize(
    "command",
    [
        ["-r", "ID", "-p", "more"],
        ["-r", "ID", "--fork", "-p", "more"],
        ["ask", "--session", "ID", "more"],
        ["rename", "ID", "Other"],
        ["fork", "ID"],
        ["compact", "ID"],
        ["compact", "--undo", "ID"],
        ["context", "ID", "--drop", "ENTRY"],
        ["context", "ID", "--pin", "ENTRY"],
        ["rewind", "ID", "start"],
    ],
)
def test_no_door_writes_into_the_trash(cli: Cli, command: list[str]) -> None:
    session, entries = cli.session([user("Hello"), model("Hi.")])
    cli.ok("trash", session.id)
    before = cli.ok("show", session.id, "--json").json
    names = {"ID": session.id, "ENTRY": entries[0].id}
    refused = cli(*(names.get(word, word) for word in command), env={"OPENAI_API_KEY": "k"})
    assert refused.code != 0
    short = session.id[-8:]
    assert f"session {short} is in the trash; `recollect restore {short}`" in refused.err
    assert cli.ok("show", session.id, "--json").json == before
    assert cli.ok("sessions", "--all", "--json").json == []


def test_reading_a_trashed_session_is_allowed_and_says_so(cli: Cli) -> None:
    session, _ = cli.session([user("Hello"), model("Hi.")])
    cli.ok("trash", session.id)
    assert "in the trash" in cli.ok("show", session.id).out
    assert cli.ok("export", session.id, "--to", "gemini", "-o", "-").json["messages"]
    assert "no cut would save" in cli("compact", session.id, "--preview").err
    cli.ok("rewind", session.id, "start", "--preview")


def test_an_import_does_not_wake_or_change_a_trashed_session(cli: Cli, tmp_path: Path) -> None:
    file = server_file(tmp_path / "s.json", [{"role": "user", "content": "Hello"}])
    cli.ok("import", str(file))
    session = only_session(cli)["id"]
    cli.ok("trash", session)
    said = [{"role": "user", "content": text} for text in ("Hello", "More")]
    refused = cli("import", str(server_file(file, said)))
    assert refused.code == 1
    assert "in the trash" in refused.err
    cli.ok("restore", session)
    assert "added" in cli.ok("import", str(file)).out


def test_a_grown_file_never_sets_the_last_use_back(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    cli.ok("import", str(gemini_file(file, ["Hello"])))
    imported = only_session(cli)
    assert imported["used"] == imported["created"]
    cli.ok("rename", imported["id"], "Used today")
    today = only_session(cli)["used"]
    assert today > imported["used"] + YEAR // 2
    cli.ok("import", str(gemini_file(file, ["Hello", {"reply": "Hi."}, "More"])))
    assert only_session(cli)["used"] == today


def test_an_import_alone_is_no_use(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    cli.ok("import", str(gemini_file(file, ["Hello"], summary="A title")))
    cli.ok("import", str(gemini_file(file, ["Hello", {"reply": "Hi."}], summary="Another")))
    last = json.loads(file.read_bytes())["messages"][-1]["timestamp"]
    assert last.startswith("2025-01-01T10:00:01")
    assert only_session(cli)["used"] == only_session(cli)["created"] + 1_000


def test_a_rewind_leaves_the_last_use_where_it_was(cli: Cli) -> None:
    session, entries = cli.session([user("Hello"), model("Hi.")])
    before = only_session(cli)["used"]
    cli.ok("rewind", session.id, entries[0].id)
    assert only_session(cli)["used"] == before
