"""No tool runs with an argument that the model did not write completely."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from recollect.codecs.call_problems import call_problem_feedback
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.text_tools import TextToolsWire
from recollect.codecs.think_tags import split_thoughts
from recollect.entries import Message, Text, ToolCall, json_text
from tests.codecs.mutated_replies import mutations, occurs
from tests.codecs.text_tools.replies import CORPUS, TOOLS, inline

ROOT = "/work"
WIRE = TextToolsWire(wire=OpenAIWire(model="m"), tools=TOOLS, root=ROOT)


def read(text: str, finish: str) -> Message:
    reply = Message(role="model", parts=(Text(text=text),), finish=finish)
    return WIRE.find_calls(split_thoughts(reply))


def calls_of(reply: Message) -> list[tuple[str, str]]:
    return [(part.name, part.arguments) for part in reply.parts if isinstance(part, ToolCall)]


def run_mutations(count: int, seed: int) -> Counter[str]:
    """Damaged replies by what became of them."""
    rng = random.Random(seed)
    sources = [mutations(text, rng, CORPUS) for text in CORPUS]
    seen: Counter[str] = Counter()
    for number in range(count):
        text = next(sources[number % len(sources)])
        reply = read(text, rng.choice(("stop", "stop", "length", "")))
        found = calls_of(reply)
        for _, arguments in found:
            assert occurs(json.loads(arguments), text, root=ROOT), json_text([text, arguments])
        problem = bool(call_problem_feedback(reply))
        seen["ran" if found else "problem" if problem else "text"] += 1
        seen["calls"] += len(found)
        seen["ran with a problem beside"] += bool(found) and problem
    return seen


def test_every_undamaged_reply_runs() -> None:
    for text in CORPUS:
        reply = read(text, "stop")
        assert calls_of(reply), text
        assert call_problem_feedback(reply) == "", text
        for _, arguments in calls_of(reply):
            assert occurs(json.loads(arguments), text, root=ROOT), text


def test_no_mutated_reply_runs_an_argument_that_was_not_written() -> None:
    seen = run_mutations(6_000, seed=1)
    assert min(seen["ran"], seen["problem"], seen["text"]) > 100, seen


@pytest.mark.long
def test_no_reply_of_a_hundred_thousand_runs_an_argument_that_was_not_written() -> None:
    seen = run_mutations(100_000, seed=2)
    assert min(seen["ran"], seen["problem"], seen["text"]) > 1_000, seen


@pytest.mark.parametrize("finish", ["length", ""])
def test_wherever_a_reply_is_cut_only_calls_run_that_were_whole(finish: str) -> None:
    for text in CORPUS:
        whole = calls_of(read(text, "stop"))
        for at in range(len(text)):
            found = calls_of(read(text[:at], finish))
            assert found == whole[: len(found)], text[:at]


def test_a_value_occurs_only_where_it_is_written_completely() -> None:
    text = inline("write_file", file_path="a", content='x\n"y"', n=100, on=True)
    assert occurs({"file_path": "a", "content": 'x\n"y"', "n": 100, "on": True}, text)
    assert occurs({"file_path": "/work/a"}, text, root="/work")
    for wrong in ({"content": "x"}, {"n": 10}, {"on": False}, {"other": "a"}, {"content": ""}):
        assert not occurs(wrong, text), wrong
    assert not occurs({"content": "half"}, '{"content": "half a file')
    assert not occurs({"n": 1}, '{"n": 1')
    pieces = b'{"arguments": "{\\"n\\": 1"}, {"arguments": "00}"}'
    assert occurs({"n": 100}, pieces)
