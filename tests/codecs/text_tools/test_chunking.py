"""However a reply is cut, the same calls and the same text are found in it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import json_text
from tests.codecs.text_tools.replies import NAMES, SAMPLES, replies, scanned


@given(replies, st.lists(st.integers(0, 400), max_size=8), st.booleans())
def test_any_chunking_gives_the_same_pieces(text: str, cuts: list[int], cut_off: bool) -> None:
    inside = [min(cut, len(text)) for cut in cuts]
    assert scanned(text, *inside, cut_off=cut_off) == scanned(text, cut_off=cut_off)


@given(replies)
def test_one_character_at_a_time_gives_the_same_pieces(text: str) -> None:
    assert scanned(text, *range(len(text))) == scanned(text)


def _mutated(text: str, rng: random.Random) -> str:
    characters = list(text)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(characters) + 1)
        match rng.randrange(4):
            case 0:
                del characters[at : at + rng.randint(1, 5)]
            case 1:
                characters[at:at] = rng.choice(['"', "{", "}", "`", "\n", "<", "\\", ",", "'", "]"])
            case 2:
                end = rng.randrange(len(characters) + 1)
                characters[at:at] = characters[min(at, end) : max(at, end)][:200]
            case _:
                del characters[at:]
    return "".join(characters)


def _mutate(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(count):
        text = "".join(rng.sample(SAMPLES, rng.randint(1, 3)))
        damaged = _mutated(text, rng)
        found, _ = scanned(damaged, *(rng.randrange(len(damaged) + 1) for _ in range(3)))
        for delta in found:
            assert delta.kind == "text" or delta.name in NAMES, (number, damaged)
        if number % 10 == 0:
            assert found == scanned(damaged)[0], json_text(damaged)


def test_mutated_replies_neither_crash_nor_call_undeclared_tools() -> None:
    _mutate(2_000, seed=1)


@pytest.mark.long
def test_a_hundred_thousand_mutated_replies_neither_crash_nor_call_undeclared_tools() -> None:
    _mutate(100_000, seed=2)
