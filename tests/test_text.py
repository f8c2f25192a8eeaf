from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.text import LEFT_OUT, clean, clip, clip_again, clip_middle, one_line
from tests.strategies import text

lengths = st.integers(0, 300)


@given(text)
def test_clean_text_can_be_encoded_and_stays_as_it_is(given_text: str) -> None:
    cleaned = clean(given_text)
    cleaned.encode()
    assert clean(cleaned) == cleaned
    assert all(char in "\n\t" or char.isprintable() or ord(char) > 0x9F for char in cleaned)


def test_terminal_codes_are_removed_and_line_ends_become_one_character() -> None:
    assert clean("\x1b[1;31mred\x1b[0m\r\n\x1b]0;title\x07two\rthree") == "red\ntwo\nthree"


@given(text.map(lambda piece: piece * 20), lengths)
def test_a_cut_text_is_never_longer_than_asked(long: str, most: int) -> None:
    cuts = (clip(long, most), clip_middle(long, most), clip_again(long, most), one_line(long, most))
    assert all(len(cut) <= max(most, 0) for cut in cuts)
    assert "\n" not in one_line(long, most)


def test_a_text_without_its_middle_says_how_much_is_missing() -> None:
    cut = clip_middle("x" * 500 + "y" * 500, 200)
    kept = cut.count("x") + cut.count("y")
    mark = f" [… {1000 - kept} characters left out …] "
    assert cut == "x" * cut.count("x") + mark + "y" * cut.count("y")


@given(st.integers(60, 4_000), st.integers(60, 400), st.integers(0, 400))
def test_a_text_that_is_cut_twice_has_no_number(length: int, first: int, second: int) -> None:
    once = clip_middle("x" * length, first)
    twice = clip_again(once, second)
    if twice != once:
        assert not LEFT_OUT.search(twice)
        assert not any(digit in twice for digit in "0123456789")
