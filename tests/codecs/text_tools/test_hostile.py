"""Replies made to break the scanner, large, deep, never ending: it stays linear and sound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from recollect.codecs.text_tools.argument_coercion import DeclaredTools
from recollect.codecs.text_tools.call_scanner import CallScanner
from recollect.codecs.text_tools.lenient_json import MAX_REPAIRED, JsonRepairer
from recollect.codecs.think_tags import ThinkTagSplitter
from tests.codecs.text_tools.replies import TOOLS, calls, fenced, inline, pieces, scanned, words
from tests.growth import is_linear

UNITS = (
    *("{", "`", "` ", "<tool_call>", '{"', '{"tool_call": ', "```json\n{", '```json\n{"a\n```\n'),
    *(
        '\n{"tool_call": {"x": "',
        '` {"tool_call": \n',
        "<function=glob>",
        'TOOL: glob\nARGS: {"a\n',
    ),
    *(
        "\\",
        "\n",
        "<t",
        '<tool_call>{"a": "</tool_call>',
        '{"tool_call": }}',
        '```\n[{"name": "glob", ',
    ),
    *(
        "~~~\n",
        " \n",
        '```\n{"name": "',
        '"',
        '{"tool_call": "\\',
        "<think>",
        "`<think>",
        "</think>",
    ),
    *('```json\n{"tool_call": [" ', "```\n</think>\n", "<function=plan></function>\nx ` {\n"),
    *("<function=glob><parameter=a>x</parameter></function>", "e.g. ", "    \n", "1. \n    "),
)


def _scan(reader: CallScanner | ThinkTagSplitter, text: str) -> None:
    for at in range(0, len(text), 20):
        reader.feed(text[at : at + 20])
    reader.close()


@pytest.mark.parametrize("unit", UNITS)
def test_the_cost_stays_linear_whatever_the_text(unit: str) -> None:
    def scan_calls(size: int) -> Callable[[], None]:
        return partial(_scan, CallScanner(DeclaredTools(TOOLS)), unit * (size // len(unit)))

    def split_thoughts(size: int) -> Callable[[], None]:
        return partial(_scan, ThinkTagSplitter(), unit * (size // len(unit)))

    assert is_linear(scan_calls, 4_000, 80_000)  # a square would give a factor of 400
    assert is_linear(split_thoughts, 4_000, 80_000)


@pytest.mark.parametrize("unit", UNITS)
def test_no_hostile_text_is_a_call_and_none_of_it_is_lost(unit: str) -> None:
    text = unit * (40_000 // len(unit))
    assert calls(text) == []
    assert words(text) == text


def test_a_call_after_hostile_text_is_still_found() -> None:
    for unit in ("{", "` ", '{"', "\\", "<t", "\n"):
        assert calls(unit * 50_000 + "\n" + fenced("glob", pattern="*"))


def test_text_that_is_read_again_after_a_call_costs_no_square() -> None:
    call = "<function=glob><parameter=pattern>x</parameter></function>\n"

    def scan(size: int) -> Callable[[], None]:
        return partial(
            _scan, CallScanner(DeclaredTools(TOOLS)), call + 'a ` {"tool_call"\n' * (size // 17)
        )

    assert is_linear(scan, 20_000, 400_000)


def test_a_call_of_a_megabyte_is_found_whole() -> None:
    content = 'x"\n{`' * 200_000
    ((name, arguments),) = calls(fenced("write_file", file_path="/x", content=content))
    assert name == "write_file"
    assert len(arguments) > 1_000_000


def test_a_broken_call_is_repaired_up_to_its_limit_and_not_beyond() -> None:
    def damaged(size: int) -> str:
        return inline("write_file", file_path="/x", content="x" * size)[:-1] + ",}"

    assert len(calls(damaged(MAX_REPAIRED - 1_000))) == 1
    assert calls(damaged(MAX_REPAIRED + 1_000)) == []
    (problem,) = scanned(damaged(MAX_REPAIRED + 1_000))[1]
    assert problem.endswith("it is not valid JSON, and too long to be repaired")


def test_deep_nesting_is_neither_a_call_nor_a_crash() -> None:
    for depth in (200, 100_000):
        deep = "[" * depth + "]" * depth
        text = '{"tool_call": {"name": "plan", "arguments": {"steps": ' + deep + "}}}"
        assert calls(text) == []
        assert words(text) == text


@pytest.mark.parametrize("unit", ['["', '\\"', "\\'", '{"a":', "“", "*/ /*"])
def test_repairing_never_takes_the_square_of_the_time(unit: str) -> None:
    def read_repeatedly(size: int) -> Callable[[], None]:
        text = '{"tool_call": {"a": "b ' + unit * (size // len(unit))

        def read() -> None:
            repairer = JsonRepairer()
            for _ in range(5):
                repairer.read(text)

        return read

    assert is_linear(read_repeatedly, 2_000, 20_000)


def test_the_problems_of_a_reply_are_few_and_short() -> None:
    name = "x" * 10_000
    _, problems = scanned(fenced(name) * 1_000)
    assert 0 < len(problems) <= 8
    assert max(map(len, problems)) < 500


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 5_000])
def test_numbers_that_json_does_not_have_are_never_passed_on(number: str) -> None:
    text = '{"tool_call": {"name": "glob", "arguments": {"pattern": "*", "n": ' + number + "}}}"
    for delta in pieces(text):
        assert delta.kind == "text" or "NaN" not in delta.text.replace('"NaN"', "")
        assert delta.kind == "text" or "Infinity" not in delta.text.replace('"Infinity"', "")
