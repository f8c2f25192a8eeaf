"""Text on its way to a terminal, and times for people: pure functions and their properties."""

from __future__ import annotations

import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.cli.typed_dates import parse_date
from recollect.display.dates import format_age, format_time
from recollect.display.display_text import (
    WORTHLESS,
    align_table,
    display_width,
    one_line,
    pad,
    sanitize,
    shorten,
    truncate,
)
from recollect.text import format_size

ANY = st.text(st.characters(codec=None), max_size=60)
HOUR = 3_600_000


@given(ANY)
def test_nothing_a_terminal_obeys_or_hides_is_left(text: str) -> None:
    for char in sanitize(text):
        assert char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
        assert not 0xE0000 <= ord(char) <= 0xE007F
        assert char not in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@given(ANY)
def test_making_harmless_twice_changes_nothing_more(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)


@given(st.text("abc 中文é\u0301ｆ"))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert sanitize(text) == text


def test_hidden_characters_become_visible() -> None:
    assert sanitize("\x1b[31m\x00\x7f\x9b\u202e\U000e0041\ud800") == (
        "␛[31m␀␡\\x9b\\u202e\\U000e0041\\ud800"
    )


@given(ANY, st.integers(1, 30))
def test_a_cut_text_fits(text: str, width: int) -> None:
    assert display_width(truncate(one_line(text), width)) <= width


@given(ANY, st.integers(0, 30))
def test_padding_reaches_the_width(text: str, width: int) -> None:
    line = one_line(text)
    assert display_width(pad(line, width)) == max(width, display_width(line))


def test_wide_characters_take_two_columns_and_accents_none() -> None:
    assert display_width("限流") == 4
    assert display_width("e\u0301") == 1
    assert truncate("限流器", 5) == "限流…"


@given(st.lists(st.lists(ANY.map(one_line), min_size=3, max_size=3), max_size=6))
def test_every_row_of_a_table_is_equally_wide(rows: list[list[str]]) -> None:
    widths = {tuple(map(display_width, row)) for row in align_table(rows, width=None, stretch=1)}
    assert len(widths) <= 1


def test_a_table_is_cut_where_it_stretches() -> None:
    (row,) = align_table([["id", "a long title that does not fit", "9"]], width=20, stretch=1)
    assert display_width("  ".join(row)) == 20
    assert row[1].endswith("…")


@given(
    st.text("ab\n", max_size=400),
    st.integers(1, 8),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.3, 0.5]),
)
def test_shortening_keeps_the_ends_and_counts_the_rest(
    text: str, lines: int, characters: int, share: float
) -> None:
    text = text.rstrip("\n")
    head, left, tail = shorten(text, lines=lines, characters=characters, tail=share)
    assert text.startswith(head)
    assert text.endswith(tail)
    if not left:
        assert (head, tail) == (text, "")
        return
    gone = len(text) - len(head) - len(tail)
    assert left.endswith(f"{gone:,} more characters")
    assert gone > WORTHLESS or "lines" in left
    assert len(head) + len(tail) <= max(1, characters)
    assert head.count("\n") + tail.count("\n") <= lines
    assert bool(tail) <= bool(share)


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (3e12, "3.0 TB")]
)
def test_sizes_have_a_suitable_unit(count: float, text: str) -> None:
    assert format_size(count) == text


@pytest.mark.parametrize(
    ("past", "text"),
    [
        (0, "just now"),
        (90_000, "1 minute ago"),
        (3 * HOUR, "3 hours ago"),
        (24 * HOUR, "1 day ago"),
        (15 * 24 * HOUR, "2 weeks ago"),
        (400 * 24 * HOUR, "1 year ago"),
    ],
)
def test_ages_are_in_the_largest_unit(past: int, text: str) -> None:
    now = 1_800_000_000_000
    assert format_age(now - past, now) == text


def test_a_time_no_calendar_reaches_is_shown_as_a_number() -> None:
    assert format_time(2**53 - 1) == f"{2**53 - 1} ms"
    assert format_time(-(2**53)) == f"{-(2**53)} ms"


def test_dates_are_read_as_users_type_them() -> None:
    now = parse_date("2026-11-15T12:00")
    assert parse_date("3h", now) == now - 3 * HOUR
    assert parse_date("2 d ago", now) == now - 48 * HOUR
    assert parse_date("today", now) == parse_date("2026-11-15")
    assert parse_date("Yesterday", now) == parse_date("2026-11-14")
    assert parse_date("now", now) == now
    assert parse_date("2026-11-01T00:00+00:00") == 1_793_491_200_000


@pytest.mark.parametrize("text", ["", "someday", "2026-13-01", "3x", "99999999999d"])
def test_an_invalid_date_is_refused_with_examples(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a date; give one like 2026-11-01"):
        parse_date(text)
