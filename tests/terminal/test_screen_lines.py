"""The line of keys: none is cut, and the one that leaves the screen is always there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.display.display_text import display_width
from recollect.terminal.screen_lines import fit_keys

KEYS = ("Enter open", "o open the session", "/ find", "Esc close")


def test_what_fits_stands_in_two_lines_at_most() -> None:
    assert fit_keys(KEYS, 80) == "Enter open · o open the session · / find · Esc close"
    assert fit_keys(KEYS, 40) == "Enter open · o open the session · / find\nEsc close"
    assert fit_keys(KEYS, 20) == "Enter open\nEsc close"
    assert fit_keys(KEYS, 80, lines=1) == fit_keys(KEYS, 80)
    assert fit_keys(KEYS, 45, lines=1) == "Enter open · o open the session · Esc close"


@given(st.lists(st.text("abc ö日", min_size=1, max_size=30), min_size=1), st.integers(10, 100))
def test_no_line_is_wider_than_the_screen(keys: list[str], width: int) -> None:
    lines = fit_keys(tuple(keys), width).split("\n")
    assert len(lines) <= 2
    assert all(display_width(line) <= width for line in lines)
    if display_width(keys[-1]) <= width:
        assert lines[-1].endswith(keys[-1])
