"""Folders are listed and files are found, bounded, newest first, without what is ignored."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from recollect.entries import Text, json_text
from recollect.toolkinds import classify_tool, parse_paths
from recollect.tools.builtin import glob, list_directory
from recollect.tools.directory_listing import MAX_FOUND, MAX_SHOWN
from recollect.tools.tool import Tool, ToolContext, ToolOutput


def use(tool: Tool, root: Path, **arguments: object) -> ToolOutput:
    return asyncio.run(tool(json_text(arguments), ToolContext((root,))))


def said(output: ToolOutput) -> str:
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text


def make(root: Path, *paths: str, content: str = "") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def found(root: Path, pattern: str, **more: str) -> list[str]:
    lines = said(use(glob, root, pattern=pattern, **more)).splitlines()[1:]
    return [str(Path(line).relative_to(root)) for line in lines if not line.startswith("[")]


def test_a_folder_is_listed_folders_first_with_sizes_and_links(tmp_path: Path) -> None:
    make(tmp_path, "b.txt", "a/x", content="12345")
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert said(use(list_directory, tmp_path)).splitlines() == [
        f"{tmp_path}: 1 folders and 3 files",
        "a/",
        "b.txt (5 bytes)",
        "link -> /etc/passwd",
        "pipe (not a regular file)",
    ]


def test_a_name_cannot_forge_lines(tmp_path: Path) -> None:
    (tmp_path / "a\nb.txt (0 bytes)").touch()
    assert len(said(use(list_directory, tmp_path)).splitlines()) == 2
    assert len(said(use(glob, tmp_path, pattern="*")).splitlines()) == 2


def test_a_long_listing_is_cut_and_says_so(tmp_path: Path) -> None:
    for number in range(MAX_SHOWN + 5):
        (tmp_path / f"f{number}").touch()
    lines = said(use(list_directory, tmp_path)).splitlines()
    assert len(lines) == MAX_SHOWN + 2
    assert lines[-1].startswith("[5 more are not shown")


@pytest.mark.parametrize("path", ["..", "/etc", "nothing", "file", "out"])
def test_a_path_that_is_not_a_folder_inside_is_an_error_for_the_model(
    path: str, tmp_path: Path
) -> None:
    make(tmp_path, "file")
    (tmp_path / "out").symlink_to("/etc")
    for output in (
        use(list_directory, tmp_path, path=path),
        use(glob, tmp_path, pattern="*", path=path),
    ):
        assert output.is_error
        assert said(output).startswith("Error: ")


def test_files_are_found_newest_first(tmp_path: Path) -> None:
    make(tmp_path, "old.py", "new.py", "sub/middle.py", "other.txt")
    for age, name in enumerate(["old.py", "sub/middle.py", "new.py"]):
        os.utime(tmp_path / name, (1_000 + age, 1_000 + age))
    assert found(tmp_path, "**/*.py") == ["new.py", "sub/middle.py", "old.py"]
    assert found(tmp_path, "*.py", path="sub") == ["sub/middle.py"]


def test_files_that_gitignore_excludes_are_not_found(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "build/b.py", "sub/c.py", "sub/d.py", "sub/deep/e.py", ".git/f.py")
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / "sub" / ".gitignore").write_text("/d.py\ndeep\n")
    assert sorted(found(tmp_path, "**/*.py")) == ["a.py", "sub/c.py"]
    assert found(tmp_path, "*.py", path="sub") == ["sub/c.py"]


def test_an_ignore_file_above_holds_for_a_search_below(tmp_path: Path) -> None:
    make(tmp_path, "sub/a.py", "sub/b.py")
    (tmp_path / ".gitignore").write_text("b.py\n")
    assert found(tmp_path, "*.py", path="sub") == ["sub/a.py"]


def test_links_are_not_walked_so_circles_end(tmp_path: Path) -> None:
    make(tmp_path, "sub/a.py")
    (tmp_path / "sub" / "again").symlink_to("..")
    (tmp_path / "out").symlink_to("/usr")
    assert found(tmp_path, "**/*.py") == ["sub/a.py"]


def test_folders_two_hundred_deep_do_no_harm(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    text = said(use(glob, tmp_path, pattern="**/*.py"))
    assert "deeper than 64" in text


def test_an_agent_does_not_find_its_own_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "data"))
    make(tmp_path, "data/recollect.db", "a.db")
    assert found(tmp_path, "**/*.db") == ["a.db"]


def test_more_files_than_are_shown_are_counted(tmp_path: Path) -> None:
    for number in range(MAX_FOUND + 3):
        (tmp_path / f"{number}.py").touch()
    text = said(use(glob, tmp_path, pattern="*.py"))
    assert text.startswith(f"{MAX_FOUND + 3} files")
    assert "[3 older ones are not shown" in text


def test_an_empty_answer_says_how_to_search_further(tmp_path: Path) -> None:
    make(tmp_path, "sub/a.py")
    assert "`**/*.py` looks in every folder" in said(use(glob, tmp_path, pattern="*.py"))


@pytest.mark.parametrize("pattern", ["", "/etc/*", "../*", "a/../../*", "x" * 2_000, "{a,b}" * 9])
def test_a_pattern_that_cannot_be_used_is_an_error(pattern: str, tmp_path: Path) -> None:
    assert use(glob, tmp_path, pattern=pattern).is_error


def test_the_calls_are_recognized_by_their_names() -> None:
    assert classify_tool(list_directory.name) == classify_tool(glob.name) == "list"
    assert [file.path for file in parse_paths('{"path":"src"}')] == ["src"]
