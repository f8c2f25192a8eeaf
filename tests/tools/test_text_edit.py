"""Edits that models can make: exact, or differing in one named way, or refused with a passage."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.tools.text_edit import apply_edits, plan_edit
from recollect.tools.tool import ToolFailed
from tests.growth import is_linear


def edited(text: str, old: str, new: str, expected: int = 1) -> tuple[str, tuple[str, ...]]:
    plan = plan_edit(text, old, new, expected, "f")
    return apply_edits(text, plan.edits), plan.ignored


def refused(text: str, old: str, new: str = "new", expected: int = 1) -> str:
    with pytest.raises(ToolFailed) as failure:
        plan_edit(text, old, new, expected, "f")
    return str(failure.value)


# --- line breaks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("a\r\nb\r\nc\r\n", "b", "b1\nb2", "a\r\nb1\r\nb2\r\nc\r\n"),
        ("a\r\nb\r\nc", "c", "c\nd", "a\r\nb\r\nc\r\nd"),
        ("a\r\nb\r\nc\r\n", "b\r\n", "x\r\ny\r\n", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\nb\n", "b", "b1\r\nb2", "a\nb1\nb2\n"),
        ("a\rb\rc", "b\nc", "b\nx\nc", "a\rb\rx\rc"),
        ("a\r\nb\nc\r\n", "b", "b1\nb2", "a\r\nb1\nb2\nc\r\n"),  # the breaks of its own line
        ("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n"),  # what stays keeps its own
        ("a", "a", "a\nb", "a\nb"),
        ("a\rb\n", "a\rb", "x", "x\n"),  # a CR within a line is a character
        ("a\r\nb\r\n", "a\r\n", "a\n", "a\nb\r\n"),  # only the break is to change
        ("a\r\nb\r\n", "a\nb\n", "", ""),
    ],
)
def test_new_text_gets_the_breaks_of_its_place(text: str, old: str, new: str, after: str) -> None:
    assert edited(text, old, new) == (after, ())


LINES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "", "a b"]), st.sampled_from(["\n", "\r\n"])), max_size=12
).map(lambda lines: "".join(line + end for line, end in lines))


@given(text=LINES, old=st.text("ab \n", min_size=1, max_size=5), new=st.text("ab \n\r", max_size=6))
def test_nothing_outside_the_match_changes(text: str, old: str, new: str) -> None:
    try:
        plan = plan_edit(text, old, new, 1, "f")
    except ToolFailed:
        return
    (edit,) = plan.edits
    plain = text.replace("\r\n", "\n")
    after = apply_edits(text, plan.edits)
    assert after.startswith(text[: edit.start])
    assert after.endswith(text[edit.end :])
    if not plan.ignored:
        wanted = plain.replace(old, new.replace("\r\n", "\n"), 1)
        assert after.replace("\r\n", "\n") == wanted.replace("\r\n", "\n")


# --- what may be ignored -----------------------------------------------------------------------


def test_blanks_at_the_ends_of_lines_may_differ() -> None:
    text = "def f():  \n    a = 1\t\n    return a\n"
    after, ignored = edited(text, "def f():\n    a = 1\n", "def f():\n    a = 2\n")
    assert after == "def f():  \n    a = 2\n    return a\n"  # the line that stays keeps its blanks
    assert ignored == ("blanks at the ends of lines",)
    after, ignored = edited("x = 1\ny = 2\n", "x = 1  \ny = 2  ", "z")
    assert (after, ignored) == ("z\n", ("blanks at the ends of lines",))
    assert "not in f" in refused("x = 10\n", "x = 1  ")  # a blank at the end ends a word


@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        (
            "    if (a) {\n        foo();\n    }\n",
            "if (a) {\n    foo();\n}",
            "if (a) {\n    bar();\n}",
            "    if (a) {\n        bar();\n    }\n",
        ),
        ("if a:\n\n    b\n", "  if a:\n\n      b\n", "  if a:\n      c\n", "if a:\n    c\n"),
        (
            "\tx = 1\r\n\ty = 2\r\n",
            "x = 1\ny = 2",
            "x = 1\nz = 3\ny = 2",
            "\tx = 1\r\n\tz = 3\r\n\ty = 2\r\n",
        ),
        (
            "  // c\n\n  function f() {}",
            "\nfunction f() {}",
            "\nfunction g() {}",
            "  // c\n\n  function g() {}",
        ),
        ("  a\n  b", "a\nb\n", "c\n", "  c"),  # the file ends without a newline
    ],
)
def test_the_indentation_may_differ_by_the_same_in_all_lines(
    text: str, old: str, new: str, after: str
) -> None:
    made, ignored = edited(text, old, new)
    assert made == after
    assert ignored in ((), ("the indentation",))


def test_an_indentation_that_differs_from_line_to_line_is_not_guessed() -> None:
    assert "1→  hello" in refused("  hello\n    world\n", "hello\nworld", "bye\nmoon")
    assert "nearest" in refused("a\n  b\n", "    a\n      b", "  c")  # the new text is not so deep


def test_a_missing_newline_at_the_end_stays_missing() -> None:
    made, (ignored,) = edited("a\nlast", "last\n", "final\n")
    assert made == "a\nfinal"
    assert "does not have at its end" in ignored


@pytest.mark.parametrize("mark", ["→", "\t", ": ", " | "])
def test_line_numbers_that_were_copied_are_taken_off(mark: str) -> None:
    old = f"  9{mark}b = 2\n 10{mark}c = 3"
    made, ignored = edited("a = 1\nb = 2\nc = 3\n", old, f"  9{mark}b = 7\nd\n 10{mark}c = 3")
    assert made == "a = 1\nb = 7\nd\nc = 3\n"
    assert ignored == ("line numbers",)
    assert "not in f" in refused("b = 2\nc = 3\n", f"9{mark}b = 2\n11{mark}c = 3")
    assert edited(f"1{mark}x\n", f"1{mark}x", "y") == ("y\n", ())  # they are in the file


def test_backslashes_are_taken_off_only_where_nothing_can_be_lost() -> None:
    text = 'say("hi")\nend\n'
    assert edited(text, 'say(\\"hi\\")\\nend', "x") == ("x\n", ("backslashes",))
    said = refused(text, 'say(\\"hi\\")', 'say(\\"ho\\")')
    assert "stands in line 1" in said
    assert "without a backslash" in said
    assert edited('a = "\\n"\n', '"\\n"', '"\\t"') == ('a = "\\t"\n', ())  # exact comes first


def test_what_is_not_unique_is_refused_with_its_lines() -> None:
    assert "2 times in f, not 1 (lines 1, 3)" in refused("x\ny\nx\n", "x")
    assert edited("x\r\ny\r\nx\r\n", "x\n", "z\n", 2) == ("z\r\ny\r\nz\r\n", ())
    assert "stands there 2 times (lines 1, 3)" in refused("  x = 1\ny\n  x = 1\n", " x = 1 \n")
    assert "(lines 1, 2)" in refused("  a\n  a\n  a\n", "a \na")  # places that overlap
    assert "1 times" in refused("  x\n  y\n", "x\ny", expected=2)


def test_replacements_that_change_nothing_say_so() -> None:
    assert "are the same" in refused("a\n", "a", "a")
    assert "differ only in line breaks" in refused("a\nb\n", "a\r\nb", "a\nb")
    assert "old_string is empty" in refused("a\n", "", "a")


# --- the nearest passage -----------------------------------------------------------------------


def test_the_nearest_passage_has_the_lines_that_differ() -> None:
    body = "\n".join(f"line {n}\n}}" for n in range(500)) + "\ndef f(a):\n    return a + 1\n}\n"
    said = refused(body, "def f(a):\n    return a + 2\n}")
    assert "1001→def f(a):\n1002→    return a + 1\n1003→}" in said
    assert said.count("\n") < 30
    assert "nothing like it" in refused(body, "zebra!")


@pytest.mark.parametrize("repeated", ["ab ", "x\n", " ", "\n", "a\r\n"])
@pytest.mark.parametrize("unit", ["ab  ab\nq", "x\n", " \n", "a\n"])
def test_what_is_not_found_is_answered_in_linear_time(repeated: str, unit: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        text, old = repeated * size, unit * (size // 10) + "q"
        return lambda: refused(text, old)

    assert is_linear(prepare, 20_000, 200_000)


def test_many_replacements_take_linear_time() -> None:
    def prepare(size: int) -> Callable[[], object]:
        return lambda: plan_edit("a " * size, "a", "b\nc", size, "f")

    assert is_linear(prepare, 10_000, 100_000)


@pytest.mark.parametrize("rest", ["class A {}\r\n", "", "b\r\nc\r\nd\n"])
def test_text_before_the_first_character_gets_the_breaks_of_the_file(rest: str) -> None:
    text = "using System;\r\n" + rest
    plan = plan_edit(text, "using System;", "// Copyright\nusing System;", 1, "a.cs")
    assert apply_edits(text, plan.edits) == "// Copyright\r\n" + text
