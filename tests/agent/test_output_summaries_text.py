"""The words of summaries: what code finds in an output, and what it lets a model say of it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.agent.output_excerpts import (
    MAX_EXCERPTS,
    Excerpt,
    find_excerpts,
    merge_excerpts,
    parse_reply,
)
from recollect.agent.output_summaries import LongOutput, build_request, frame_summary
from recollect.compaction.quoted_text import clip_to_tokens, make_marker
from recollect.tokens import ESTIMATE
from tests.agent.test_output_summaries import ENTRY, OUTPUT, STACK, WARNING, is_balanced
from tests.strategies import text as any_text


def long(output: str) -> LongOutput:
    return LongOutput(ENTRY, "tool", output, 5_000)


pieces = st.sampled_from(
    [
        STACK,
        WARNING,
        "error: x\n  in y",
        "<error>",
        "</error>",
        "<warning>",
        "</warning>",
        "Traceback (most recent call last):",
        "  indented",
        "plain",
        "\n",
        f"[end of summary {ENTRY}]",
        f"summary {ENTRY}",
        f"[recall {ENTRY}: ",
        "\x1b[31m",
    ]
)
soup = st.lists(pieces | any_text, max_size=30).map("\n".join)


@given(soup)
def test_what_code_finds_stands_in_the_output_word_for_word(output: str) -> None:
    found = find_excerpts(output)
    assert all(each.text in output for each in found)
    assert len(set(found)) == len(found) <= 2 * MAX_EXCERPTS


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        (STACK, "error"),
        ("src/a.rs:1: error[E0308]: mismatched types\n  --> src/a.rs:1:2", "error"),
        ("java.lang.NullPointerException\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)", "error"),
        ("TypeError: x is not a function\n    at a (b.js:1:2)", "error"),
        ("thread 'main' panicked at src/main.rs:2:5:\n  index out of bounds", "error"),
        ("npm ERR! code ELIFECYCLE", "error"),
        ("E   AssertionError", "error"),
        ("FAILED tests/test_a.py::test_b", "error"),
        ("a.py:1: DeprecationWarning: old\n  import x", "warning"),
        ("npm WARN deprecated x", "warning"),
        ("2026-01-01 WARN: slow", "warning"),
    ],
)
def test_errors_with_their_stacks_and_warnings_are_found_whole(output: str, kind: str) -> None:
    (found,) = find_excerpts(f"before\n{output}\nafter")
    assert (found.kind, found.text) == (kind, output)


@pytest.mark.parametrize(
    "line", ["0 errors, 0 warnings", "except ValueError:", "no error here", "errors: 0", "ok"]
)
def test_what_is_no_error_is_not_taken_for_one(line: str) -> None:
    assert find_excerpts(f"a\n{line}\nb") == ()


def test_of_many_errors_the_first_and_the_last_are_kept() -> None:
    found = find_excerpts("\n".join(f"error: number {n}" for n in range(1_000)))
    assert len(found) == MAX_EXCERPTS
    assert found[0].text == "error: number 0"
    assert found[-1].text == "error: number 999"


@given(soup)
def test_the_marker_is_not_in_the_output(output: str) -> None:
    assert make_marker(output) not in output
    data, wanted = build_request(long(output), 2_000, 50, ESTIMATE)
    assert data.count(make_marker(output)) == 2
    assert wanted.count(make_marker(output)) == 1


@given(soup, st.integers(-5, 200), st.floats(0, 1))
def test_a_cut_text_has_at_most_so_many_tokens(text: str, tokens: int, head: float) -> None:
    cut = clip_to_tokens(text, tokens, ESTIMATE, head=head)
    assert ESTIMATE.text(cut) <= max(tokens, 0)
    assert cut == text or ESTIMATE.text(text) > tokens


@given(soup)
def test_a_reply_without_tags_is_all_prose(written: str) -> None:
    plain = written.replace("<", "(")
    assert parse_reply(plain) == (plain.strip(), ())


def test_a_reply_is_split_into_prose_and_claims() -> None:
    prose, claims = parse_reply("a<error>\nb\n</error>c<warning>d</warning><error>e<warning>f")
    assert prose == "ac<error>e<warning>f"
    assert claims == (Excerpt("error", "b"), Excerpt("warning", "d"))


@given(soup, soup)
def test_every_excerpt_is_the_outputs_own_and_nothing_that_was_found_is_lost(
    written: str, output: str
) -> None:
    claims, found = parse_reply(written)[1], find_excerpts(output)
    kept = merge_excerpts(claims, found, output)
    assert all(each.text in output for each in kept)
    assert all(any(each.text in one.text for one in kept) for each in found)
    assert merge_excerpts(kept, found, output) == kept


def test_a_piece_of_a_stack_that_the_model_quotes_is_not_shown_twice() -> None:
    claims = (Excerpt("error", STACK[-20:]), Excerpt("warning", "exit code 1"))
    assert merge_excerpts(claims, find_excerpts(OUTPUT), OUTPUT) == (
        Excerpt("warning", "exit code 1"),
        Excerpt("error", STACK),
        Excerpt("warning", WARNING),
    )


def test_errors_leave_room_for_prose_and_say_how_many_are_not_shown() -> None:
    output = "\n".join(f"error: number {n} of the day is much too large" for n in range(300))
    text = frame_summary(long(output), "It failed.", 500, ESTIMATE)
    shown = text.count("<error>\n")
    assert 4 < shown < MAX_EXCERPTS
    assert "It failed." in text
    assert "error: number 0 " in text
    assert "error: number 299 " in text
    assert f"[{MAX_EXCERPTS - shown} more errors or warnings are in the full text]" in text


def test_of_an_error_that_is_too_long_both_ends_are_shown() -> None:
    frames = "".join(f'  File "a{n}.py", line 3, in do\n    go({n})\n' for n in range(900))
    output = f"Traceback (most recent call last):\n{frames}ZeroDivisionError: division by zero\nx"
    text = frame_summary(long(output), "It failed.", 300, ESTIMATE)
    assert "<error>\nTraceback (most recent call last):\n" in text
    text = frame_summary(long(output), "It failed.", 2_000, ESTIMATE)
    assert "<error>\nTraceback (most recent call last):\n" in text
    assert "ZeroDivisionError: division by zero\n</error>" in text


def test_of_an_endless_reply_only_so_much_is_read() -> None:
    text = frame_summary(long("x"), "word " * 1_000_000, 500, ESTIMATE)
    found = re.search(r"\[… ([0-9,]+) characters left out …\]", text)
    assert found is not None
    assert int(found[1].replace(",", "")) < 100_000


@given(soup, soup, st.integers(150, 2_000))
def test_a_summary_is_bounded_and_nothing_leaves_its_frame(
    written: str, output: str, limit: int
) -> None:
    text = frame_summary(long(output), written, limit, ESTIMATE)
    if not text:
        return
    assert ESTIMATE.text(text) <= limit
    assert text.count(f"summary {ENTRY}") == text.count(f"recall {ENTRY}") == 1
    assert text.startswith(f"[recall {ENTRY}: ")
    assert text.endswith(f"\n[end of summary {ENTRY}]")
    assert is_balanced(text.partition("\n")[2])


@pytest.mark.parametrize(
    "hostile",
    [
        "<error>" * 14_000,
        "<error>x</error>" * 6_000,
        "<warning>" * 5_000 + "</error>" * 5_000,
        "error: " * 14_000,
        "Traceback (most recent call last)\n" * 3_000,
        "error: x\n " * 10_000,
        "<" + " " * 99_000,
    ],
)
def test_hostile_texts_take_linear_time(hostile: str) -> None:
    began = time.process_time()
    text = frame_summary(long(hostile * 10), f"a{hostile}", 2_000, ESTIMATE)
    assert time.process_time() - began < 20  # minutes, if it were quadratic
    assert ESTIMATE.text(text) <= 2_000
