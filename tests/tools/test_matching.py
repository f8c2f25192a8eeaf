"""Globs and ignore files mean what they mean elsewhere, and no pattern takes long."""

from __future__ import annotations

import shutil
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.tools.matching import glob_of, ignore_of, is_ignored


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("src/**/test_*.py", "src/test_a.py", True),
        ("src/**/b/**/c", "src/b/x/b/y/c", True),
        ("a/*/c", "a/b/b/c", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("{a,b{1,2}}/x", "b2/x", True),
        ("{a,b{1,2}}/x", "b/x", False),
        ("a{b", "a{b", True),
        ("[ab]?", "bz", True),
        ("[^a]", "b", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("./a", "a", True),
    ],
)
def test_globs_fit_what_people_expect(pattern: str, path: str, fits: bool) -> None:
    assert glob_of(pattern).fits(path.split("/")) is fits


def test_braces_that_stand_for_too_much_are_refused() -> None:
    with pytest.raises(ValueError, match="braces"):
        glob_of("{a,b}" * 20)


def test_no_pattern_takes_long() -> None:
    began = time.process_time()
    assert not glob_of("*a" * 300 + "b").fits(["a" * 255] * 3)
    assert not glob_of("**/a/" * 150 + "b").fits(["a"] * 300)
    assert not is_ignored(["a" * 255], [(0, ignore_of("\n".join(["*a" * 20 + "b"] * 2_000)))])
    assert time.process_time() - began < 3


names = st.sampled_from(["a", "b", "ab", "a.py", ".x", "src"])
wild = st.sampled_from(["a", "b", "*", "**", "a*", "*.py", "?", "[ab]", "src", ".x"])


@st.composite
def rules(draw: st.DrawFn) -> str:
    body = "/".join(draw(st.lists(wild, min_size=1, max_size=3)))
    marks = draw(st.sampled_from(["", "!"])), draw(st.sampled_from(["", "/"]))
    return marks[0] + marks[1] + body + draw(st.sampled_from(["", "/"]))


def walked(path: list[str], text: str) -> bool:
    """As a walk sees it: an ignored folder is not entered."""
    chain = [(0, ignore_of(text))]
    above = range(1, len(path))
    return any(is_ignored(path[:n], chain, folder=True) for n in above) or is_ignored(path, chain)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge here")
@settings(max_examples=100)
@given(
    paths=st.lists(st.lists(names, min_size=1, max_size=4), min_size=1, max_size=12),
    lines=st.lists(rules(), max_size=5),
)
def test_ignore_files_mean_what_they_mean_to_git(
    paths: list[list[str]], lines: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    repository = tmp_path_factory.getbasetemp() / "judged"
    if not repository.exists():
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / ".gitignore").write_text("\n".join(lines))
    asked = "\0".join("/".join(path) for path in paths)
    command = ["git", "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(command, cwd=repository, input=asked, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    ignored = set(filter(None, done.stdout.split("\0")))
    for path in paths:
        assert walked(path, "\n".join(lines)) == ("/".join(path) in ignored), path


def test_comments_spaces_and_endings_are_read_as_git_reads_them() -> None:
    ignore = ignore_of("\ufeff# note\r\n\r\nfoo  \r\n\\#real\nwith\\ \nend\\!\n")
    chain = [(0, ignore)]
    assert [is_ignored([name], chain) for name in ("foo", "#real", "with ", "end!", "# note")] == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_a_deeper_ignore_file_has_the_last_word() -> None:
    chain = [(0, ignore_of("*.log")), (1, ignore_of("!keep.log"))]
    assert is_ignored(["sub", "other.log"], chain)
    assert not is_ignored(["sub", "keep.log"], chain)
