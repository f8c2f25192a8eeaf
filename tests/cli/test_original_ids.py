"""An imported session is found by the id it had, and belongs to the project it names."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from recollect.testing import user
from tests.cli.runner import Cli
from tests.cli.session_files import (
    CLAUDE_ID,
    GEMINI_ID,
    claude_file,
    gemini_file,
    only_session,
    server_file,
)

HELLO = {"role": "user", "content": "Hello there"}


def imported(cli: Cli, folder: Path, format_: str) -> str:
    """Import a file of a format; the id in it."""
    if format_ == "gemini":
        cli.ok("import", str(gemini_file(folder / "s.json", ["Hello there"])))
        return GEMINI_ID
    if format_ == "claude-code":
        cli.ok("import", str(claude_file(folder / "s.jsonl", ["Hello there"])))
        return CLAUDE_ID
    cli.ok("import", str(server_file(folder / "s.json", [HELLO])))
    return "abc123-def456"


@pytest.mark.parametrize("format_", ["gemini", "claude-code", "history-server"])
@pytest.mark.parametrize("length", [6, 10, 40])
def test_every_command_finds_a_session_by_its_original_id(
    cli: Cli, tmp_path: Path, format_: str, length: int
) -> None:
    given = imported(cli, tmp_path, format_)[:length]
    assert "Hello there" in cli.ok("show", given).out
    assert "Hello there" in cli.ok("search", "hello", "--session", given).out
    assert cli.ok("export", given, "--to", "gemini", "-o", "-").json["messages"]
    assert "Hello there" in cli.ok("encode", given, "--to", "openai").out
    for command in (["context", given], ["rename", given, "Greetings"], ["fork", given]):
        cli.ok(*command)
    cli.ok("trash", given)
    assert "is back" in cli.ok("restore", given).out


def test_a_beginning_of_several_ids_lists_them(cli: Cli, tmp_path: Path) -> None:
    for number in (1, 2):
        said = [{"role": "user", "content": f"Question {number}"}]
        cli.ok("import", str(server_file(tmp_path / "s.json", said, id_=f"chat-{number}")))
    vague = cli("show", "chat-")
    assert vague.code == 1
    assert "Question 1" in vague.err
    assert "Question 2" in vague.err
    assert "Question 2" in cli.ok("show", "chat-2").out


def test_a_whole_id_is_meant_before_the_beginning_of_another(cli: Cli, tmp_path: Path) -> None:
    for id_ in ("chat", "chat-2"):
        said = [{"role": "user", "content": f"In {id_}."}]
        cli.ok("import", str(server_file(tmp_path / "s.json", said, id_=id_)))
    assert "In chat." in cli.ok("show", "chat").out


def test_an_original_id_does_not_hide_a_session_of_ours(cli: Cli, tmp_path: Path) -> None:
    session, _ = cli.session([user("Ours")])
    short = session.id[-8:]
    cli.ok("import", str(server_file(tmp_path / "s.json", [HELLO], id_=f"{short}-chat")))
    assert "Ours" in cli(*["show", short]).err
    assert "Ours" in cli.ok("show", session.id).out


def test_one_id_in_two_projects_is_two_sessions(cli: Cli, tmp_path: Path) -> None:
    places = [tmp_path / "one", tmp_path / "two"]
    for number, place in enumerate(places, 1):
        place.mkdir()
        said = [{"role": "user", "content": f"Question {number}"}]
        file = server_file(place / "s.json", said, id_="default")
        cli.ok("import", str(file), cwd=place)
        assert "nothing new" in cli.ok("import", str(file), cwd=place).out
    for number, place in enumerate(places, 1):
        (found,) = cli.ok("sessions", "--json", cwd=place).json
        assert found["title"] == f"Question {number}"
    assert "Question 1" in cli("show", "default").err
    # the first file has grown: it is known by what it shares, wherever one stands
    more = [{"role": "user", "content": "Question 1"}, {"role": "user", "content": "And now?"}]
    grown = cli.ok("import", str(server_file(tmp_path / "s.json", more, id_="default")))
    assert "2 entries added, 1 known" in grown.out


def project_of(cli: Cli) -> str:
    return str(only_session(cli)["project"])


def test_a_session_belongs_to_its_folder_even_if_that_is_gone(cli: Cli, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    cli.ok("import", str(claude_file(tmp_path / "s.jsonl", ["Hello"], cwd=gone)))
    assert project_of(cli) == str(gone)
    assert cli.ok("sessions", "--json").json == []


def test_a_gemini_session_belongs_to_the_folder_beside_its_chats(cli: Cli, tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "my-project" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(f"{tmp_path / 'work'}\n")
    cli.ok("import", str(gemini_file(chats / "session-1.json", ["Hello"])))
    assert project_of(cli) == str(tmp_path / "work")


@pytest.mark.parametrize("by_hash", [True, False])
def test_a_gemini_session_belongs_to_the_project_of_the_list(
    cli: Cli, tmp_path: Path, by_hash: bool
) -> None:
    root = str(tmp_path / "work")
    name = hashlib.sha256(root.encode()).hexdigest() if by_hash else "work-2"
    chats = tmp_path / ".gemini" / "tmp" / name / "chats"
    chats.mkdir(parents=True)
    listed = {"projects": {"/other": "other", root: "work-2"}}
    (tmp_path / ".gemini" / "projects.json").write_text(json.dumps(listed))
    projectHash = name if by_hash else "?"  # noqa: N806 - the file's own word
    cli.ok("import", str(gemini_file(chats / "s.json", ["Hello"], projectHash=projectHash)))
    assert project_of(cli) == root


def test_a_hash_is_matched_with_the_paths_of_known_projects(cli: Cli, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    cli.ok("import", str(server_file(tmp_path / "s.json", [HELLO])), cwd=work)
    digest = hashlib.sha256(str(work).encode()).hexdigest()
    cli.ok("import", str(gemini_file(tmp_path / "g.json", ["Hello"], projectHash=digest)))
    assert len(cli.ok("sessions", "--json", cwd=work).json) == 2


@pytest.mark.parametrize("content", ["", "relative/path", "/a\0b", "/" + "x" * 9_000, "[" * 9_000])
def test_a_damaged_project_file_names_nothing(cli: Cli, tmp_path: Path, content: str) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "p" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text(content)
    (tmp_path / ".gemini" / "projects.json").write_text(content)
    cli.ok("import", str(gemini_file(chats / "s.json", ["Hello"])))
    assert project_of(cli) == str(cli.project)


def test_a_moved_folder_keeps_its_imported_sessions(cli: Cli, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("x")
    cli.ok("import", str(claude_file(tmp_path / "s.jsonl", ["Hello"], cwd=work)))
    shutil.move(work, tmp_path / "moved")
    assert len(cli.ok("sessions", "--json", cwd=tmp_path / "moved").json) == 1
