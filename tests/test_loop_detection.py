from __future__ import annotations

import json
import random
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recollect.entries import Message, Text
from recollect.loop_detection import (
    Loop,
    LoopDetector,
    RepeatedCalls,
    build_judge_message,
    call_key,
    judge_is_due,
    loop_warning,
    parse_judgement,
)
from recollect.repetition import WINDOW
from recollect.testing import call, model, result, user
from tests.strategies import json_values, messages
from tests.strategies import text as any_text

SENTENCE = "I will now have a look at the configuration again. "
LETTERS = "abcdefghijklmnopqrstuvwxyz      "


def prose(size: int, seed: int = 1) -> str:
    return "".join(random.Random(seed).choices(LETTERS, k=size))


def fed(*calls: tuple[str, str]) -> list[Loop | None]:
    repeated = RepeatedCalls()
    return [repeated.call(name, arguments) for name, arguments in calls]


# --- calls -------------------------------------------------------------------------------------


def test_the_same_call_five_times_in_a_row_is_a_loop_and_four_times_is_not() -> None:
    found = fed(*[("grep", '{"pattern":"x"}')] * 5)
    assert found == [None] * 4 + [Loop(kind="call", what="grep", times=5)]


def test_another_call_between_breaks_the_row() -> None:
    same, other = ("grep", '{"pattern":"x"}'), ("grep", '{"pattern":"y"}')
    assert not any(fed(*[same] * 4, other, *[same] * 4))


@given(st.integers(2, 5))
def test_a_cycle_of_calls_is_found_when_its_fifth_round_is_complete(length: int) -> None:
    cycle = [(f"tool{i}", "{}") for i in range(length)]
    found = fed(*cycle * 5)
    assert not any(found[:-1])
    assert found[-1] is not None
    assert (found[-1].kind, found[-1].length, found[-1].times) == ("cycle", length, 5)
    assert found[-1].what == ", ".join(name for name, _ in cycle)


@given(st.lists(st.sampled_from("abc"), max_size=60))
@example(list("abcdef" * 9))
@example(list("aab" * 5))
@example(list("abcabcabcabcab"))
def test_a_loop_is_found_exactly_where_the_last_calls_are_five_equal_rounds(
    names: list[str],
) -> None:
    repeated, since = RepeatedCalls(), ""
    for name in names:
        since += name
        ends = [n for n in range(1, 6) if len(since) >= 5 * n and since.endswith(since[-n:] * 5)]
        found = repeated.call(name, "{}")
        assert (found.length if found else None) == (ends[0] if ends else None)
        if found:
            since = ""


def test_one_command_on_many_files_is_not_a_loop() -> None:
    detector = LoopDetector()
    for i in range(200):
        assert not detector.text(
            "Now I apply the same change of the licence header to the next file."
        )
        assert not detector.call(
            "run_shell_command", json.dumps({"command": f"ruff format f{i}.py"})
        )
        assert not detector.call(
            "replace", json.dumps({"path": f"f{i}.py", "old": "a", "new": "b"})
        )
    assert detector.loops == 0


def test_a_test_run_between_different_edits_is_not_a_loop() -> None:
    detector = LoopDetector()
    for i in range(50):
        assert not detector.call("replace", json.dumps({"path": "a.py", "new": str(i)}))
        assert not detector.call("run_shell_command", '{"command":"pytest"}')


@given(st.dictionaries(any_text, json_values, max_size=4), any_text)
def test_key_order_whitespace_and_escapes_do_not_make_another_call(
    arguments: dict[str, object], name: str
) -> None:
    turned = dict(reversed(arguments.items()))
    plain = json.dumps(arguments, ensure_ascii=False)
    assert call_key(name, plain) == call_key(name, json.dumps(turned, indent=3))


@given(any_text, any_text, any_text, any_text)
def test_other_names_or_arguments_make_another_call(a: str, b: str, x: str, y: str) -> None:
    one, other = (a, json.dumps({"v": x})), (b, json.dumps({"v": y}))
    assert (call_key(*one) == call_key(*other)) == (one == other)


@pytest.mark.parametrize(
    "arguments",
    ["", "{", "[" * 100_000, '{"a":' * 50_000, "9" * 10_000, "NaN", "1e999", "\ud800", '"\\ud800"'],
)
def test_arguments_that_are_not_valid_json_are_compared_as_text(arguments: str) -> None:
    assert fed(*[("any", arguments)] * 5)[-1] is not None
    assert call_key("any", arguments) != call_key("any", arguments + "x")


def test_the_memory_is_bounded() -> None:
    detector = LoopDetector()
    said = [prose(10_000, seed) for seed in range(8)]
    tracemalloc.start()
    try:
        for text in said:
            detector.call(text, text * 20)
        for text in said:
            detector.text(text)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # a window of chunks, each with its place, and nothing of the 1,600,000 characters of calls
    assert held < WINDOW * 400


# --- the detector ------------------------------------------------------------------------------


repeating = st.sampled_from([SENTENCE * 12, "哈" * 600, "- yes\n" * 300, "\n" * 300, "─" * 10_000])


@given(st.lists(any_text | repeating, max_size=30))
def test_a_loop_in_any_text_is_quoted_on_one_short_printable_line(said: list[str]) -> None:
    detector = LoopDetector()
    loops = [found for piece in said if (found := detector.text(piece))]
    assert detector.loops == len(loops)
    for loop in loops:
        assert loop.what.isprintable()
        assert len(loop.what) <= 101
        assert loop_warning(loop).encode().isascii() == loop.what.isascii()


def test_the_first_loop_warns_and_the_second_stops() -> None:
    detector = LoopDetector()
    found = [detector.call("grep", "{}") for _ in range(9)]
    assert [bool(loop) for loop in found] == [False] * 4 + [True] + [False] * 4
    before = detector.loops
    assert detector.call("grep", "{}")
    assert (before, detector.loops) == (1, 2)


def test_loops_of_calls_of_words_and_of_the_judge_are_counted_together() -> None:
    detector = LoopDetector()
    assert detector.text(SENTENCE * 100)
    before = detector.loops
    assert detector.judged('{"why": "it waits", "stuck": 1}')
    assert (before, detector.loops) == (1, 2)


def test_a_reply_that_is_requested_again_does_not_repeat_itself() -> None:
    detector = LoopDetector()
    for _ in range(20):
        detector.begin_reply()
        assert not detector.text(f"The answer begins so:\n```\n{SENTENCE * 3}")
    assert detector.loops == 0


def test_a_detector_that_is_off_finds_nothing() -> None:
    detector = LoopDetector(on=False)
    assert not any(detector.call("grep", "{}") for _ in range(50))
    assert not detector.text(SENTENCE * 100)
    assert not detector.judged('{"stuck": 1}')
    assert detector.loops == 0


def test_the_warning_quotes_the_repetition() -> None:
    assert '"grep"' in loop_warning(Loop(kind="call", what="grep", times=5))
    assert '2 calls ("a, b")' in loop_warning(Loop(kind="cycle", what="a, b", times=5, length=2))
    assert "again and again" in loop_warning(Loop(kind="text", what="again and again", times=10))
    assert "it waits" in loop_warning(Loop(kind="judged", what="it waits"))


@given(any_text.map(lambda name: name * 50))
def test_a_warning_is_one_short_line_whatever_the_name_of_a_tool(name: str) -> None:
    (*_, found) = fed(*[(name, "{}")] * 5)
    assert found is not None
    warning = loop_warning(found)
    assert len(warning) < 800
    assert warning.isprintable()


# --- the judge ---------------------------------------------------------------------------------


def test_the_judge_is_due_after_thirty_turns_and_every_tenth_from_there() -> None:
    due = [turn for turn in range(60) if judge_is_due(turn, 30)]
    assert due[0] == 30
    assert due[1:] == [40, 50]


def test_the_judge_sees_the_newest_words_calls_and_results() -> None:
    grep = call("grep", pattern="x")
    old = [user(f"question {i}") for i in range(30)]
    said = build_judge_message(
        [*old, model("I look", grep), result(grep, "no match", is_error=True)]
    )
    (shown,) = said.parts
    assert isinstance(shown, Text)
    assert 'model: says "I look"' in shown.text
    assert 'model: calls "grep" with "{\\"pattern\\":\\"x\\"}"' in shown.text
    assert 'user: error "no match"' in shown.text
    assert "question 29" in shown.text
    assert "question 11" not in shown.text


@given(st.lists(messages, max_size=24))
def test_what_the_judge_sees_is_bounded_and_a_step_stays_on_its_line(said: list[Message]) -> None:
    (shown,) = build_judge_message(said).parts
    assert isinstance(shown, Text)
    shown.text.encode()
    steps = shown.text.split("\n")
    assert len(steps) <= max(1, sum(len(message.parts) for message in said[-20:]))
    assert all(len(step) < 2_000 and step.isprintable() for step in steps)


@pytest.mark.parametrize(
    "answer",
    [
        '{"why": "it reads a.py forever", "stuck": 0.95}',
        '```json\n{"why": "it reads a.py forever", "stuck": 1}\n```',
        'Let me see {what} happens.\n{"why": "it reads a.py forever", "stuck": 0.9,}',
        '<think>{"stuck": 0} {</think>{"stuck": 0.95, "why": "it reads a.py forever"} {',
    ],
)
def test_a_judge_that_is_sure_makes_a_loop(answer: str) -> None:
    assert parse_judgement(answer) == Loop(kind="judged", what="it reads a.py forever")


UNSURE = ["true", '"1"', "0.89", "7", "NaN", "null", "[1]"]
UNREADABLE = ["", "yes", "{", "}{", "[1]", '{"why": "stuck"}', '{"a":' * 9_000, "{" * 90_000]


@pytest.mark.parametrize("answer", [*(f'{{"stuck": {sure}}}' for sure in UNSURE), *UNREADABLE])
def test_an_unsure_or_unreadable_judgement_is_not_a_loop(answer: str) -> None:
    assert parse_judgement(answer) is None
