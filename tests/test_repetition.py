"""Repetition in text: found soon in what is said, late in markup, and never in a report."""

from __future__ import annotations

import random
import string
import tracemalloc
from itertools import takewhile
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.repetition import (
    BATCH_TIMES,
    LINE_TIMES,
    SYMBOLS,
    WINDOW,
    RepeatedText,
    Repetition,
)

SENTENCE = "I will now have a look at the configuration again. "
LETTERS = "abcdefghijklmnopqrstuvwxyz      "


def prose(size: int, seed: int = 1) -> str:
    return "".join(random.Random(seed).choices(LETTERS, k=size))


def first_in(text: str) -> Repetition | None:
    return RepeatedText().text(text)


def test_a_repeated_sentence_is_a_loop() -> None:
    found = first_in(prose(2_000) + SENTENCE * 12)
    assert found is not None
    assert (found.kind, found.times) == ("text", 10)
    assert set(found.what.split()) & set(SENTENCE.split())


def is_loop(places: list[int], repeated: int) -> bool:
    """Whether a chunk that came at these places, the last of so many repeated ones, is a loop."""
    near = [last - first <= 9 * 250 for first, last in zip(places, places[9:], strict=False)]
    times = 9 + len(list(takewhile(bool, reversed(near))))
    nothing_new = len(places) >= 10 and repeated > places[-1] - places[-9]
    return (times >= 10 and nothing_new) or times >= 100


@given(
    st.lists(
        st.tuples(st.sampled_from("aabcE"), st.just(0) | st.integers(0, 500), st.integers(0, 9)),
        max_size=60,
    )
)
@example([("a", 200, 0)] * 10)
@example([("a", 201, 0)] * 10)
@example([("a", 200, n) for n in range(100)])
@example([("a", 200, n) for n in range(99)])
@example([("a", 201, n) for n in range(120)])
@example([("a", 0, 0), ("b", 90, 0), ("c", 90, 0)] * 20)
@example([("a", 0, 0)] * 9 + [("E", 1_750, 0), ("a", 0, 0)])
@example([("a", 60, n) for n in range(11)] * 2)  # a list that comes twice
@example([("a", 60, n) for n in range(4)] * 5)
def test_a_loop_is_found_exactly_when_unbounded_memory_would_find_it(
    said: list[tuple[str, int, int]],
) -> None:
    parts = (prose(50, ord(who)) + prose(gap, between) for who, gap, between in said)
    text = "x" * 64 + "".join(parts)
    places: dict[str, list[int]] = {}
    expected, repeated = False, 0
    for at in range(len(text) - 49):
        seen = places.setdefault(text[at : at + 50], [])
        repeated = repeated + 1 if seen and at - seen[-1] <= 500 else 0
        if not seen or at - seen[-1] >= 50:
            seen.append(at)
            expected = expected or is_loop(seen, repeated)
    assert (first_in(text) is not None) == expected


@given(st.text(string.ascii_lowercase, min_size=1, max_size=250), st.integers(0, 2**32))
def test_words_that_repeat_exactly_are_found_when_they_came_the_tenth_time(
    unit: str, seed: int
) -> None:
    step = len(unit) * ceil(50 / len(unit))  # overlapping chunks count once
    text = prose(64, seed) + unit * 600
    assert first_in(text[: 64 + 9 * step + 50]) is not None


@pytest.mark.parametrize("text", ["哈" * 600, "我再试一次。" * 120, "ha" * 400])
def test_repetition_is_found_in_any_script_and_also_without_words(text: str) -> None:
    assert first_in(text) is not None


def test_the_same_chunk_counts_up_to_an_average_distance_of_five_chunks() -> None:
    chunk = prose(50, seed=7)

    def at_distance(characters: int, *, seeds: int) -> str:
        gaps = (prose(characters - 50, seed=100 + i % seeds) for i in range(120))
        return "".join(chunk + gap for gap in gaps)

    for seeds in (1, 120):  # the same between them every time, and never the same
        assert first_in(at_distance(250, seeds=seeds)) is not None
        assert first_in(at_distance(251, seeds=seeds)) is None


@given(st.integers(0, 2**32))
def test_ordinary_text_is_not_a_loop(seed: int) -> None:
    assert first_in(prose(3_000, seed)) is None


@pytest.mark.parametrize(
    "mark",
    ["- ", "* ", "+ ", "12. ", "3) ", "  - ", "| ", "> ", "## ", "• ", "1、", "+--", "```\n```\n"],
)
def test_lists_tables_headings_quotes_and_fences_restart_the_count(mark: str) -> None:
    assert first_in("".join(f"{SENTENCE}\n" for _ in range(30))) is not None
    assert first_in("".join(f"{mark}{SENTENCE}\n" for _ in range(30))) is None
    assert first_in(mark + SENTENCE * 30) is not None  # in a line that never ends


CODE = "    assert value is not None and value.is_sound()  # checked\n" * 40


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("```python", "```"),
        ("~~~", "~~~"),
        ("````", "`````"),
        ("  - ```py", "    ```"),
        ("```", "``` "),
    ],
)
def test_code_is_skipped_and_the_text_after_it_is_read(opening: str, closing: str) -> None:
    code = f"Here it is:\n{opening}\n{CODE}{closing}\n"
    assert first_in(code + prose(200)) is None
    assert first_in(code + SENTENCE * 12 + prose(64)) is not None


def test_a_fence_is_closed_only_by_its_own_kind() -> None:
    assert first_in(f"````\n```\n{CODE}") is None
    assert first_in(f"~~~\n```\n{CODE}") is None
    assert first_in(f"```\n```python\n{CODE}") is None


@pytest.mark.parametrize("size", [3, 80])
def test_code_inside_a_line_opens_no_fence(size: int) -> None:
    assert first_in(f"```{'x' * size}``` is set.\n" + SENTENCE * 12 + prose(64)) is not None


repeated = st.sampled_from([SENTENCE * 4, SENTENCE * 7, "哈" * 90, f"{SENTENCE}\n" * 6, CODE[:300]])
marks = st.sampled_from(
    ["\n", "\n```", "```\n", "\n~~~\n", "\n- ", "| a |\n", "\n# b\n", "\r\n", "`"]
)
others = st.sampled_from(["x" * 70, "word ", "1. ", "> ", " " * 40, "``", prose(90)])
pieces = repeated | marks | others
texts = st.lists(repeated | pieces, max_size=40).map("".join)


def place_of_first(text: str, sizes: list[int]) -> tuple[Repetition | None, int, int]:
    """The repetition and between which characters it was found."""
    repeated, at, turn = RepeatedText(), 0, 0
    while at < len(text):
        end = at + sizes[turn % len(sizes)]
        found = repeated.text(text[at:end])
        if found:
            return found, at, end
        at, turn = end, turn + 1
    return None, at, at


@given(texts, st.lists(st.integers(1, 700), min_size=1, max_size=5))
@example(SENTENCE * 40, [1])
@example(f"{'x' * 63}\n" * 40, [64])
@example(f"```{SENTENCE * 40}`", [64])
@example(f"{'`' * 3}{' ' * 61}\n{SENTENCE * 40}", [64])
def test_however_a_text_is_cut_the_first_loop_is_found_at_the_same_character(
    text: str, sizes: list[int]
) -> None:
    exact, _, place = place_of_first(text, [1])
    assert first_in(text) == exact
    found, begin, end = place_of_first(text, sizes)
    assert found == exact
    assert found is None or begin < place <= end


# --- reports -----------------------------------------------------------------------------------

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa")
REPORTS = [
    "src/pkg/module_{0}{1}.py: no problems found; the types are right and all tests pass.\n",
    "**src/pkg/{0}{1}.py**: no problems were found in this file, and all of its tests pass.\n\n",
    "ALTER TABLE t{1} ADD COLUMN created_at TIMESTAMP NOT NULL DEFAULT now();\n",
    "Item {1}: check the file and fix the problem in it, then run the tests again.\n",
    "Item {1}: check the file and fix the problem in it, then run the tests again. ",
    '  {{"name": "{0}{1}", "description": "nothing is known", "enabled": true, "children": []}},\n',
    "第{1}节：本节没有发现问题，所有测试都已通过，代码风格也符合规范，不需要做任何修改，可以直接合并到主分支，请放心发布，无需再次检查。\n",
    "──── page ────\nSection {1}: {0}\nPart {1} is about it and all that follows from it.\n",
]


def report(line: str, count: int) -> str:
    return "".join(line.format(NAMES[n % len(NAMES)], n) for n in range(count))


@pytest.mark.parametrize("line", REPORTS)
def test_a_report_with_something_new_in_each_line_is_no_loop_until_it_counts_without_end(
    line: str,
) -> None:
    assert first_in("I checked them:\n\n" + report(line, BATCH_TIMES - 1)) is None
    found = first_in(report(line, BATCH_TIMES + 5))
    assert found is not None
    assert found.times == BATCH_TIMES


@pytest.mark.parametrize("line", REPORTS)
def test_a_report_that_says_the_same_of_one_thing_for_ever_is_a_loop_at_once(line: str) -> None:
    found = first_in(line.format("alpha", 1) * 14)
    assert found is not None
    assert found.times == 10


def test_a_list_that_comes_twice_is_no_loop() -> None:
    same = report(REPORTS[0], 12)
    assert first_in(f"Before:\n{same}\nAfter:\n{same}") is None


# --- endless output in any markup --------------------------------------------------------------

ENDLESS = [
    "- yes\n",
    "1. yes, I do\n",
    "| a | b |\n",
    "> so\n",
    "# Title\n\n",
    "\n",
    " \r\n",
    "- a\n- b\n\n- c\n- d\n",
    f"- {SENTENCE * 3}\n",
]
marked = st.sampled_from(ENDLESS)


@pytest.mark.parametrize("before", ["", "Well:\n", "```python\n", "~~~\n"])
@pytest.mark.parametrize("lines", ENDLESS)
def test_lines_that_come_very_many_times_are_a_loop_in_any_markup_and_in_code(
    lines: str, before: str
) -> None:
    assert first_in(before + lines * (LINE_TIMES - 1)) is None
    found = first_in(before + lines * (LINE_TIMES + 1))
    assert found is not None
    assert (found.kind, found.times) == ("text", LINE_TIMES)


@pytest.mark.parametrize("number", ["{}. ", "{}) ", "  {}. ", "{}、", "({}) ", "（{}）"])
def test_a_numbered_list_of_the_same_item_is_a_loop_however_far_it_counts(number: str) -> None:
    assert first_in("".join(f"{number.format(n)}Look again.\n" for n in range(400))) is not None


def test_long_tables_and_lists_are_no_loop() -> None:
    zeros = "0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,\n"
    assert first_in(f"```c\n{zeros * 256}```\n") is None
    assert first_in("".join(f"| {n} | 0 | 0 |\n" for n in range(2_000))) is None
    assert first_in("".join(f"{n}. {prose(9, n)}\n" for n in range(2_000))) is None
    assert first_in("```\n" + "".join(f"{n}.5 0.0\n" for n in range(2_000))) is None
    ends = "".join(f"- {'x' * 100}{n}\n" for n in range(2_000))
    assert first_in(ends) is None


@pytest.mark.parametrize("symbols", ["─", " ", "=-", "\n \t", "#\n\n", "`", "🎉", "_ ", "\u0300"])
@pytest.mark.parametrize("before", ["", "Well: ", "```\n", "- "])
def test_symbols_without_end_are_a_loop(symbols: str, before: str) -> None:
    assert first_in(before + symbols * SYMBOLS) is not None


@given(st.integers(1, SYMBOLS), st.sampled_from("a1我"), st.integers(1, 700))
@example(1, "a", 1)
def test_a_run_of_symbols_is_too_long_at_the_same_character_however_it_is_cut(
    before: int, letter: str, size: int
) -> None:
    text = "─" * (before - 1) + letter + "─" * SYMBOLS
    exact = before + SYMBOLS
    assert first_in(text[: exact - 1]) is None
    found, begin, end = place_of_first(text, [size])
    assert found == Repetition("symbols", "─", SYMBOLS)
    assert begin < exact <= end


blocks = st.builds(lambda unit, times: unit * times, marked, st.integers(1, 160)) | st.sampled_from(
    ["─" * 4_000, "\n" * 140, " " * 3_000, "```\n", SENTENCE * 4, "x", "x" * 70, "\n"]
)


@given(st.lists(blocks, max_size=7).map("".join), st.lists(st.integers(1, 700), min_size=1))
@example("- yes\n" * 400, [7])
@example("─" * 9_990 + SENTENCE * 20 + "─" * 20_000, [9_999])
@example("x" + "─" * 9_000 + "\n" * 2_000, [400])
def test_however_endless_output_is_cut_it_is_found_at_the_same_character(
    text: str, sizes: list[int]
) -> None:
    exact, _, place = place_of_first(text, [1])
    assert first_in(text) == exact
    found, begin, end = place_of_first(text, sizes)
    assert found == exact
    assert found is None or begin < place <= end


@pytest.mark.parametrize(
    "piece", [prose(10_000), f"- {prose(9_000)}\n", prose(40) + "\n", report(REPORTS[0], 40) + "x"]
)
def test_the_memory_for_text_is_bounded(piece: str) -> None:
    repeated = RepeatedText()
    tracemalloc.start()
    try:
        for number in range(20):
            repeated.text(piece.replace("a", str(number)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < WINDOW * 400
