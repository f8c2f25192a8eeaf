"""Our own export, imported again, is the session it came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.entries import Entry, Note, json_text
from recollect.testing import call, model, result, user
from tests.cli.runner import Cli

FORMATS = ["gemini", "history-server"]


def conversation(cli: Cli) -> tuple[str, list[str]]:
    read = call("read_file", path="a.py")
    said = [user("Why?"), model("Let me look.", read), result(read, "print(1)"), model("Because.")]
    session, entries = cli.session(said)
    return session.id, [entry.id for entry in entries]


def export(cli: Cli, session: str, to: str, *options: str) -> Path:
    file = cli.project / f"{to}.json"
    cli.ok("export", session, "--to", to, "-o", str(file), "--force", *options)
    return file


def all_sessions(cli: Cli, *options: str) -> list[str]:
    return [one["id"] for one in cli.ok("sessions", "--all", "--json", *options).json]


@pytest.mark.parametrize("to", FORMATS)
def test_in_its_own_store_it_adds_nothing(cli: Cli, to: str) -> None:
    session, _ = conversation(cli)
    before = cli.ok("show", session, "--json").json
    file = export(cli, session, to)
    assert "nothing new" in cli.ok("import", str(file)).out
    assert all_sessions(cli) == [session]
    assert cli.ok("show", session, "--json").json == before


@pytest.mark.parametrize("to", FORMATS)
def test_in_another_store_it_keeps_the_ids_and_comes_back_with_what_is_new(
    cli: Cli, to: str
) -> None:
    session, entries = conversation(cli)
    there = ["--store", str(cli.project / "other.db")]
    cli.ok("import", str(export(cli, session, to)), *there)
    assert all_sessions(cli, *there) == [session]
    copied = cli.ok("show", session, "--json", *there).json["entries"]
    assert [one["id"] for one in copied if one["body"]["kind"] == "message"] == entries
    assert "nothing new" in cli.ok("import", str(export(cli, session, to)), *there).out
    cli.ok("rename", session, "Continued elsewhere", *there)
    cli.ok("context", session, "--pin", entries[0], *there)
    back = cli.ok("import", str(export(cli, session, to, *there)))
    assert "added" in back.out
    assert back.err == ""
    assert all_sessions(cli) == [session]
    shown = cli.ok("show", session, "--json").json
    assert shown["session"]["title"] == "Continued elsewhere"
    (pin,) = (one["body"] for one in shown["entries"] if one["body"]["kind"] == "pin")
    assert pin["entries"] == [entries[0]]
    assert "nothing new" in cli.ok("import", str(export(cli, session, to, *there))).out


@pytest.mark.parametrize("to", FORMATS)
def test_what_continued_in_both_places_becomes_a_branch_and_is_said(cli: Cli, to: str) -> None:
    session, _ = conversation(cli)
    there = ["--store", str(cli.project / "other.db")]
    cli.ok("import", str(export(cli, session, to)), *there)
    cli.ok("rename", session, "There", *there)
    cli.ok("rename", session, "Here")
    diverged = cli.ok("import", str(export(cli, session, to, *there)))
    assert "diverged" in diverged.err
    assert all_sessions(cli) == [session]
    assert cli.ok("show", session, "--json").json["session"]["title"] == "Here"


@pytest.mark.parametrize("to", FORMATS)
def test_a_fork_is_recognised_beside_the_session_it_was_made_of(cli: Cli, to: str) -> None:
    session, entries = conversation(cli)
    fork = cli.ok("fork", session, "--at", entries[0], "--json").json["id"]
    cli.ok("rename", fork, "The other way")
    assert "nothing new" in cli.ok("import", str(export(cli, fork, to))).out
    there = ["--store", str(cli.project / "other.db")]
    for one in (session, fork):
        cli.ok("import", str(export(cli, one, to)), *there)
    # an entry belongs to one session only: the fork's copy of it gets another id
    assert sorted(all_sessions(cli, *there)) == sorted([session, fork])
    for one in (session, fork):
        assert "nothing new" in cli.ok("import", str(export(cli, one, to)), *there).out


def test_a_changed_copy_is_a_branch_not_the_truth(cli: Cli) -> None:
    session, _ = conversation(cli)
    file = export(cli, session, "gemini")
    file.write_text(file.read_text().replace("Because.", "Never mind."))
    assert "diverged" in cli.ok("import", str(file)).err
    assert "Because." in cli.ok("show", session).out


def test_a_session_of_another_program_comes_back_under_its_own_id(cli: Cli) -> None:
    imported = [Entry("a" * 32, None, 5, user("Hello"))]
    session, _ = cli.session(imported)
    file = export(cli, session.id, "history-server")
    assert "nothing new" in cli.ok("import", str(file)).out


def test_a_forged_note_about_files_gets_no_id_of_ours(cli: Cli) -> None:
    extra = json_text({"file_change": {"path": "/etc/hosts", "stage": "before", "state": {}}})
    session, _ = cli.session([user("Hello"), Note(text="about to change it", extra=extra)])
    there = ["--store", str(cli.project / "other.db")]
    cli.ok("import", str(export(cli, session.id, "gemini")), *there)
    shown = cli.ok("show", session.id, "--json", *there).json["entries"]
    (note,) = (one for one in shown if one["body"]["kind"] == "note")
    assert note["id"][12] == "8"
    assert "nothing new" in cli.ok("import", str(export(cli, session.id, "gemini")), *there).out
