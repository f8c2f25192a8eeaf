"""A long text in rows: wrapped, folded, found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.display.display_text import display_width
from recollect.terminal.text_screen import PagedText


def rows(text: str, width: int) -> list[str]:
    folded = PagedText(text, width)
    return [folded.row(number) for number in range(folded.height)]


def test_a_line_of_any_length_is_folded_and_found() -> None:
    folded = PagedText("a" * 1_000_000 + "needle\n" + "宽" * 10_000 + "\n\ttab", 80)
    assert folded.height == 12_501 + 250 + 1
    assert folded.row(0) == "a" * 80
    row = folded.find("needle", 0)
    assert row is not None
    assert "needle" in folded.row(row)
    assert folded.find("needle", row + 1) == row  # around the end
    assert folded.find("nowhere", 0) is None
    assert folded.row(folded.height - 1) == "    tab"
    assert folded.row(folded.height + 5) == ""


def test_lines_are_wrapped_between_words_also_where_characters_are_wide() -> None:
    assert rows("the provider does not report what it cached", 20) == [
        "the provider does ",
        "not report what it ",
        "cached",
    ]
    assert rows("model: 你好世界 and plain text, 宽", 16) == [
        "model: 你好世界 ",
        "and plain text, ",
        "宽",
    ]


def test_a_word_that_is_longer_than_a_row_is_folded() -> None:
    assert rows("a " + "b" * 25, 10) == ["a bbbbbbbb", "b" * 10, "b" * 7]


@given(text=st.text("ab 宽é\u0301\n", max_size=200), width=st.integers(2, 30))
def test_no_character_is_lost_or_off_the_screen(text: str, width: int) -> None:
    shown = rows(text, width)
    assert "".join(shown) == text.replace("\n", "")
    assert all(display_width(row.rstrip(" ")) <= width for row in shown)


@given(text=st.text("ab 宽", max_size=200), width=st.integers(2, 30))
def test_what_is_found_begins_in_the_row(text: str, width: int) -> None:
    folded = PagedText(text, width)
    row = folded.find("b", 0)
    assert (row is not None) == ("b" in text)
    assert row is None or "b" in folded.row(row)
