"""Globs and ignore files mean what they mean elsewhere, and no pattern takes long."""

from __future__ import annotations

import time

import pytest

from recollect.tools.glob_pattern import parse_glob


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
        ("file[1].txt", "file[1].txt", True),
        ("file[1].txt", "file1.txt", True),
        ("app/[id]/(x)/page.tsx", "app/[id]/(x)/page.tsx", True),
        ("app/[id]/*.tsx", "app/[id]/page.tsx", False),
        ("a{1,2}", "a{1,2}", True),
    ],
)
def test_globs_match_what_users_expect(pattern: str, path: str, fits: bool) -> None:
    assert parse_glob(pattern).matches(path.split("/")) is fits


def test_braces_that_stand_for_too_much_are_refused() -> None:
    with pytest.raises(ValueError, match="braces"):
        parse_glob("{a,b}" * 20)


def test_no_pattern_takes_long() -> None:
    began = time.process_time()
    assert not parse_glob("*a" * 300 + "b").matches(["a" * 255] * 3)
    assert not parse_glob("**/a/" * 150 + "b").matches(["a"] * 300)
    assert time.process_time() - began < 3
