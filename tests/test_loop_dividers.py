"""Reports, tables and drawings are no loops, however many lines they draw; repetition is."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.repetition import SYMBOLS, RepeatedText, Repetition

WORDS = (
    "the",
    "parser",
    "index",
    "file",
    "reads",
    "writes",
    "finds",
    "new",
    "old",
    "value",
    "part",
)
NAMED = ["─", "━", "═", ". ", "#", "=-", "-", "~", "*", "_", "·", "＝", "—", "• ", "◆◇", "…", "<>"]
# punctuation, symbols and spaces of any script
symbols = st.characters(categories=["P", "S", "Zs"], exclude_characters="`~")
dividers = st.builds(
    lambda unit, size: (unit * size)[:size],
    st.sampled_from(NAMED) | st.text(symbols, min_size=1, max_size=3),
    st.integers(1, 300),
)
seeds = st.integers(0, 2**32)


def sentence(dice: random.Random, words: int = 12) -> str:
    return " ".join(dice.choices(WORDS, k=words)) + f" {dice.randrange(10**6)}."


def find(text: str, size: int = 0) -> Repetition | None:
    """The first repetition; with a size, in a text that arrives in pieces of it."""
    repeated, size = RepeatedText(), size or len(text) or 1
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return next((found for piece in pieces if (found := repeated.text(piece))), None)


@given(dividers, seeds, st.sampled_from([0, 1, 7, 64]))
@example("─" * 60, 1, 0)
def test_sections_under_a_divider_are_no_loop(line: str, seed: int, size: int) -> None:
    dice = random.Random(seed)
    sections = (
        f"{line}\nSection {n}: {sentence(dice, 3)}\n{line}\n{sentence(dice)}" for n in range(40)
    )
    assert find("\n".join(sections), size) is None


@given(dividers, seeds)
def test_a_divider_beside_a_title_or_before_short_lines_is_no_loop(line: str, seed: int) -> None:
    dice = random.Random(seed)
    titles = (f"{line} Part {n} {line}\n{sentence(dice)}\n" for n in range(40))
    assert find("".join(titles)) is None
    short = (f"Result:\n{line}\n{sentence(dice, 2)}\n\n" for n in range(40))
    assert find("".join(short)) is None


@given(dividers, st.sampled_from(["", "\n", " "]), st.integers(1, 60))
def test_dividers_alone_are_no_loop(line: str, end: str, times: int) -> None:
    assert find(((line + end) * times)[: SYMBOLS - 1]) is None


@given(seeds, st.sampled_from(["0.00", "0", "1.5 ", "  -", "n/a", "100%", "ok"]))
def test_a_table_of_numbers_is_no_loop(seed: int, cell: str) -> None:
    dice = random.Random(seed)
    labels = dice.sample(range(10_000), 60)
    rows = [(f"{label}", *[cell] * 14) for label in labels]
    assert find("\n".join(",".join(row) for row in rows)) is None
    assert find("\n".join("  ".join(row) for row in rows)) is None
    assert find("\n".join(f"| {' | '.join(row)} |" for row in rows)) is None
    figures = "\n".join("".join(f"{dice.random():8.3f}" for _ in range(9)) for _ in range(60))
    assert find(figures) is None


@given(seeds, st.integers(10, 40), st.integers(20, 78))
def test_a_drawing_is_no_loop(seed: int, height: int, width: int) -> None:
    dice = random.Random(seed)
    rows = ["".join(dice.choices(r"   ..__--/\|()oO", k=width)) for _ in range(height)]
    assert find("\n".join(rows)) is None
    mirrored = "\n".join(row + row[::-1] for row in rows)
    assert find(mirrored) is None


PAGES = sorted((Path(__file__).parent.parent / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_real_page_of_markdown_is_no_loop(page: Path) -> None:
    assert find(page.read_text(encoding="utf-8"), 40) is None


CAT = r"""
 /\_/\
( o.o )
 > ^ <
"""


def test_a_few_small_drawings_and_boxes_in_a_row_are_no_loop() -> None:
    assert find(CAT * 12) is None
    box = "╭────────╮\n│  {}  │\n╰────────╯\n    ↓\n"
    assert find("".join(box.format(f"step {n}") for n in range(60))) is None
    assert find("\n".join("  " * n + "└── " + f"folder{n}" for n in range(60))) is None


units = st.one_of(
    st.text(st.sampled_from(string.ascii_lowercase + "   ,."), min_size=1, max_size=240),
    st.text(st.sampled_from("我再试一次看配置文件。"), min_size=1, max_size=240),
).filter(lambda unit: 2 * sum(map(str.isalpha, unit)) >= len(unit) and "         " not in unit * 2)


@given(units, seeds, st.sampled_from([0, 1, 7, 64]))
@example("Let me check. ", 1, 3)
def test_words_that_repeat_are_always_a_loop(unit: str, seed: int, size: int) -> None:
    text = sentence(random.Random(seed)) + " " + unit * (4_000 // len(unit))
    assert find(text, size) is not None


@given(st.integers(0, 10**6), st.sampled_from([". ", ".\n", " ", ", ", "", "; ", " - ", "%\n"]))
@example(57, ". ")
@example(57, ".\n")
def test_a_number_that_repeats_is_a_loop_too(number: int, between: str) -> None:
    unit = f"{number}{between}"
    assert find(f"The answer is {unit * (4_000 // len(unit))}") is not None


def test_words_that_repeat_with_a_divider_beside_them_are_a_loop() -> None:
    assert find("Let me check the files again. ──────────────────────────── " * 60) is not None
