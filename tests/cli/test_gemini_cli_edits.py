"""Edits, writes and reads as the tests of Gemini CLI 0.61.0 have them, through the command line."""

from __future__ import annotations

import pytest

from recollect.entries import ToolCall
from recollect.testing import call
from tests.cli.runner import Cli
from tests.cli.test_file_edits import change, run


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        ("cost $1, end ' '", "cost $1", "cost $2", "cost $2, end ' '"),
        ("one", "one", "two$'three", "two$'three"),
        ("one two", "one", "$&-$1$2", "$&-$1$2 two"),
        ("a-b-c", "b", "x$`y", "a-x$`y-c"),
        ("match('^[ab]$')", "'^[ab]$'", "'^[ab]$', 2", "match('^[ab]$', 2)"),
        ("a b", "b", "$$1", "a $$1"),
        ("  a\n  b\n  c\n", "a\nb", "x\ny", "  x\n  y\n  c\n"),
        ("    if a {\n        b\n    }\n", "if a {\n    b\n}", "if a {\n    c\n}",
         "    if a {\n        c\n    }\n"),
        ("a\r\nb\r\n", "b", "c", "a\r\nc\r\n"),
    ],
)  # fmt: skip
def test_a_replacement_is_literal_and_keeps_what_is_around_it(
    cli: Cli, before: str, old: str, new: str, after: str
) -> None:
    file = cli.project / "a.txt"
    file.write_bytes(before.encode())
    (told,) = run(cli, change("a.txt", old, new))
    assert told.startswith("Replaced once")
    assert file.read_bytes().decode() == after


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("three", "x", "nothing like it"),
        ("   ", "x", "old_string is not in"),
        ("", "x", "old_string is empty"),
        ("one", "x", "occurs 2 times"),
        ("two", "two", "nothing would change"),
        ("two  three", "x", "old_string is not in"),  # blanks within a line count
        ("twoo", "x", "old_string is not in"),  # and so do letters
    ],
)
def test_an_edit_that_is_not_certain_changes_nothing(
    cli: Cli, old: str, new: str, why: str
) -> None:
    file = cli.project / "a.txt"
    file.write_text("one two three one\n" if "three" not in old else "one two four one\n")
    before = file.read_text()
    (told,) = run(cli, change("a.txt", old, new))
    assert told.startswith("Error")
    assert why in told
    assert file.read_text() == before


def test_a_file_is_made_by_an_edit_with_the_breaks_and_backslashes_that_are_given(
    cli: Cli,
) -> None:
    content = 'a\r\nprint("x\\n")\r\n\\\\title{b}\r\n'
    run(
        cli,
        change("deep/new.txt", "", content, "c1"),
        call("write_file", id="c2", file_path="other.txt", content=content),
    )
    for name in ("deep/new.txt", "other.txt"):
        assert (cli.project / name).read_bytes().decode() == content


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (call("write_file", file_path="folder", content="x"), "is a folder, not a file"),
        (call("write_file", file_path="", content="x"), "is not a path"),
        (call("write_file", file_path="/etc/passwd", content="x"), "leads out of the folders"),
        (call("write_file", file_path="a\0.txt", content="x"), "no NUL"),
        (call("write_file", file_path="one", content="x"), "a link to"),
        (change("../out.txt", "", "x"), "leads out of the folders"),
        (change("missing.txt", "a", "x"), "does not exist"),
        (change("a.txt", "a", "x"), "does not exist"),  # it is in a folder, and not guessed
        (call("read_file", absolute_path="one"), "in a circle"),
        (call("read_file", absolute_path="a.txt"), "does not exist"),
        (call("list_directory", path="folder/a.txt"), "is a file, not a folder"),
        (call("glob", pattern="*", path="folder/a.txt"), "is a file, not a folder"),
        (call("search_file_content", pattern="[["), "is not a regular expression"),
    ],
)
def test_a_path_that_is_wrong_is_refused_and_nothing_is_guessed(
    cli: Cli, made: ToolCall, why: str
) -> None:
    (cli.project / "folder").mkdir()
    (cli.project / "folder/a.txt").write_text("a")
    (cli.project / "one").symlink_to("two")
    (cli.project / "two").symlink_to("one")
    (told,) = run(cli, made)
    assert why in told
    assert sorted(each.name for each in cli.project.iterdir()) == ["folder", "one", "two"]
    assert (cli.project / "folder/a.txt").read_text() == "a"


def test_a_search_tells_case_apart_unless_it_is_told_not_to(cli: Cli) -> None:
    (cli.project / "..env").write_text("Hello there\n")
    plain, ignoring, inline = run(
        cli,
        call("search_file_content", id="a", pattern="HELLO"),
        call("search_file_content", id="b", pattern="HELLO", ignore_case=True),
        call("search_file_content", id="c", pattern="(?i)HELLO"),
    )
    assert plain.startswith("No match")
    assert "..env\n1→Hello there" in ignoring
    assert "..env\n1→Hello there" in inline
