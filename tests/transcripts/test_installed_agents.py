"""Other agents' sessions on this machine: counted, never opened."""

from __future__ import annotations

from pathlib import Path

from recollect.transcripts.format_table import FORMATS
from recollect.transcripts.installed_agents import (
    AGENT_LOCATIONS,
    MAX_LOOKED_AT,
    find_agent_sessions,
)


def _claude(home: Path, project: str) -> Path:
    folder = home / ".claude" / "projects" / project
    folder.mkdir(parents=True)
    return folder


def test_only_agents_whose_files_can_be_imported_are_looked_for() -> None:
    assert {location.format for location in AGENT_LOCATIONS} <= {row.name for row in FORMATS}


def test_only_session_files_count_and_none_is_opened(tmp_path: Path) -> None:
    folder = _claude(tmp_path, "-home-me-app")
    for name in ("a.jsonl", "b\n\x1b[31m.jsonl", "notes.txt", ".hidden.jsonl"):
        (folder / name).touch()
    (folder / "folder.jsonl").mkdir()
    (folder / "dangling.jsonl").symlink_to("nowhere")
    (folder / "a" / "subagents").mkdir(parents=True)
    (folder / "a" / "subagents" / "agent-1.jsonl").touch()
    (folder / "a.jsonl").chmod(0)
    (found,) = find_agent_sessions(tmp_path, {})
    assert (found.agent, found.complete) == ("Claude Code", True)
    assert found.files == 3  # a link that leads nowhere is what a shell's pattern gives, too


def test_a_file_where_a_folder_is_expected_is_no_session(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "projects").touch()
    assert find_agent_sessions(tmp_path, {}) == ()


def test_a_folder_that_leads_to_itself_and_endless_files_end_the_count(tmp_path: Path) -> None:
    folder = _claude(tmp_path, "-p")
    (folder.parent / "again").symlink_to(folder.parent)
    for number in range(MAX_LOOKED_AT + 5):
        (folder / f"{number}.jsonl").touch()
    (found,) = find_agent_sessions(tmp_path, {})
    assert not found.complete
    assert MAX_LOOKED_AT - 10 < found.files <= MAX_LOOKED_AT


def test_the_variable_of_the_agent_moves_its_folder(tmp_path: Path) -> None:
    folder = _claude(tmp_path, "-p")
    (folder / "a.jsonl").touch()
    moved = {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}
    (found,) = find_agent_sessions(tmp_path / "elsewhere", moved)
    assert found.folder == tmp_path / ".claude"
