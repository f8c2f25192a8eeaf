"""Which ignore file hides a path: those for the agent first, then those of git, read when changed.

The cases of precedence, nesting and escapes are those that Gemini CLI's tests define.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.workspace import hidden_paths
from recollect.workspace.hidden_paths import AGENT_IGNORE_FILES, find_hider, read_ignore_rules


def make(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def hidden(root: Path, *paths: str, use_git: bool = True) -> dict[str, str]:
    """By path: the ignore file that hides it, or an empty text."""
    found = {path: find_hider(root / path, (root,), use_git=use_git) for path in paths}
    return {path: hider.name if hider else "" for path, hider in found.items()}


def visible(root: Path, *paths: str, use_git: bool = True) -> list[str]:
    return [path for path, hider in hidden(root, *paths, use_git=use_git).items() if not hider]


def test_files_of_git_and_of_the_agent_hide_and_are_named(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".git/info/exclude": "excluded.txt\n",
            ".gitignore": "node_modules/\n*.log\n/dist\n",
            "sub/.gitignore": "own.txt\n",
            ".geminiignore": "secrets/\n",
            ".recollectignore": "*.key\n",
        },
    )
    expected = {
        "node_modules/a/b.js": ".gitignore",
        "src/app.log": ".gitignore",
        "dist/x": ".gitignore",
        "src/dist": "",
        "sub/own.txt": "sub/.gitignore",
        "own.txt": "",
        "excluded.txt": ".git/info/exclude",
        "secrets/x": ".geminiignore",
        "a.key": ".recollectignore",
        ".git/config": ".git",
        "sub/.git": ".git",
        "README.md": "",
    }
    assert hidden(tmp_path, *expected) == expected


def test_an_agents_ignore_file_decides_over_every_one_of_git(tmp_path: Path) -> None:
    make(
        tmp_path,
        {
            ".gitignore": "*.txt\nlogs/\n/foo/\n",
            ".geminiignore": "!important.txt\n!logs/\n!foo/\nsecret.txt\n",
            "sub/.gitignore": "!secret.txt\n",
            "foo/bar/.gitignore": "file.txt\n",
        },
    )
    paths = ("file.txt", "important.txt", "logs/app", "sub/secret.txt", "foo/bar/f2.md")
    assert visible(tmp_path, *paths) == ["important.txt", "logs/app", "foo/bar/f2.md"]
    assert hidden(tmp_path, "sub/secret.txt", "foo/bar/file.txt") == {
        "sub/secret.txt": ".geminiignore",
        "foo/bar/file.txt": "foo/bar/.gitignore",
    }


def test_without_git_only_the_agents_files_count(tmp_path: Path) -> None:
    make(tmp_path, {".gitignore": "*.txt\nlogs/\n", ".geminiignore": "temp/\n*.key\n"})
    paths = ("file.txt", "logs/x.key", "temp/file.js", ".git/config")
    assert visible(tmp_path, *paths, use_git=False) == ["file.txt", ".git/config"]


def test_a_later_agents_file_decides_over_an_earlier_one(tmp_path: Path) -> None:
    make(tmp_path, {".geminiignore": "*.log\n", ".recollectignore": "!debug.log\n"})
    assert visible(tmp_path, "debug.log", "error.log") == ["debug.log"]


def test_the_files_of_the_repository_and_of_the_root_hold_below(tmp_path: Path) -> None:
    make(tmp_path, {".geminiignore": "x\n", "a/b/.git/HEAD": "", "a/b/.gitignore": "y\n"})
    rules, names = read_ignore_rules(tmp_path / "a" / "b", (tmp_path,))
    assert names == ["a", "b"]
    assert rules.ignores(("a", "b", "x"), folder=False)
    assert rules.ignores(("a", "b", "y"), folder=False)
    assert visible(tmp_path / "a" / "b", "x", "y") == ["x"]  # a root of its own


def test_excludes_of_a_worktree_and_the_users_own_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, main, other = tmp_path / "home", tmp_path / "main", tmp_path / "other"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    make(home, {".config/git/ignore": "usual.txt\n", "own-excludes": "named.txt\n"})
    run = ["git", "-c", "user.name=x", "-c", "user.email=x@y"]
    subprocess.run(["git", "init", "--quiet", str(main)], check=True)
    commit = [*run, "commit", "--quiet", "--allow-empty", "-m", "first"]
    subprocess.run(commit, cwd=main, check=True)
    add = [*run, "worktree", "add", "--quiet", str(other)]
    subprocess.run(add, cwd=main, check=True, capture_output=True)
    make(main, {".git/info/exclude": "mine.txt\n"})
    for place in (main, other):
        assert visible(place, "mine.txt", "usual.txt", "named.txt") == ["named.txt"]
    make(home, {".gitconfig": "[user]\nname = x\n[core]\n\texcludesFile = ~/own-excludes\n"})
    assert visible(other, "mine.txt", "usual.txt", "named.txt") == ["usual.txt"]


@pytest.mark.parametrize("age", [0, 3_600])
def test_a_changed_ignore_file_is_noticed(tmp_path: Path, age: int) -> None:
    file = tmp_path / ".geminiignore"
    for text, expected in (("aaa\n", ["bbb"]), ("bbb\n", ["aaa"]), ("", ["aaa", "bbb"])):
        file.write_text(text)
        when = file.stat().st_mtime - age
        os.utime(file, (when, when))
        for _ in range(3):
            assert visible(tmp_path, "aaa", "bbb") == expected
    file.unlink()
    assert visible(tmp_path, "aaa", "bbb") == ["aaa", "bbb"]


def test_an_unchanged_ignore_file_is_read_once(tmp_path: Path) -> None:
    make(tmp_path, {".geminiignore": "secret\n"})
    known = hidden_paths._read_known.cache_info
    began, end = known(), time.monotonic() + 60
    while known().misses == began.misses:  # until the file is old enough to be remembered
        assert visible(tmp_path, "secret") == []
        assert time.monotonic() < end
    for number in range(100):
        assert visible(tmp_path, f"f{number}", "secret") == [f"f{number}"]
    assert known().misses == began.misses + 1
    assert known().hits >= began.hits + 200


def test_half_a_pattern_of_a_long_file_hides_nothing(tmp_path: Path) -> None:
    lines = "".join(f"name_{number:05}\n" for number in range(hidden_paths.MAX_BYTES // 11 + 1))
    text = "#" * (hidden_paths.MAX_BYTES % 11 + 3) + "\n" + lines
    make(tmp_path, {".gitignore": text})
    cut = text[: hidden_paths.MAX_BYTES].rsplit("\n", 1)[1]
    assert cut.startswith("name")
    assert visible(tmp_path, cut) == [cut]


PATTERN = st.sampled_from(
    ["a", "b", "!a", "!b", "a/", "*", "!*", "a/b", "/b", "**/a", "!a/", "*.x", "!c.x", "c.x"]
)
PATHS = st.lists(st.sampled_from(["a", "b", "c.x"]), min_size=1, max_size=3).map("/".join)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(
    git=st.lists(PATTERN, max_size=3),
    agent=st.lists(PATTERN, max_size=3),
    paths=st.lists(PATHS, min_size=1, max_size=6),
)
def test_the_walk_from_folder_to_folder_agrees_with_the_question_for_a_path(
    tmp_path: Path, git: list[str], agent: list[str], paths: list[str]
) -> None:
    make(tmp_path, {".gitignore": "\n".join(git), AGENT_IGNORE_FILES[0]: "\n".join(agent)})
    rules, _ = read_ignore_rules(tmp_path)
    for path in paths:
        names = path.split("/")
        steps = [
            rules.hider(names[:depth], folder=depth < len(names))
            for depth in range(1, len(names) + 1)
        ]
        first = next(filter(None, steps), None)
        asked = find_hider(tmp_path / path, (tmp_path,))
        assert (first and first.name) == (asked and asked.name)
