"""No native call runs with an argument that was not completely written, however a reply is damaged.

Each damaged reply is decoded as `HttpModel` does it, in pieces or whole; a call counts as one that
runs if the table of endings lets it run and its tool would take its arguments.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.endings import cut_call, judge_reply
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import Wire
from recollect.entries import Message, Text, Thought, ToolCall, Usage
from recollect.errors import RecollectError
from recollect.profiles import WireName
from recollect.testing import WireReply, call, faulty
from recollect.testing.reply_body import RequestFacts, encode_body
from recollect.tools.tool import tool
from tests.codecs.mutated_replies import mutations, occurs

FORMATS: tuple[WireName, ...] = ("gemini", "openai", "anthropic")
WIRES: dict[WireName, Wire] = {
    "gemini": GeminiWire(model="m"),
    "openai": OpenAIWire(model="m"),
    "anthropic": AnthropicWire(model="m"),
}


@tool("write")
def write_file(file_path: str, content: str, mode: int = 0, force: bool = False) -> str:
    """Writes a file.

    file_path: the file
    content: what is written
    mode: its mode
    force: whether to overwrite
    """
    raise AssertionError(f"never called: {file_path}, {content}, {mode}, {force}")


REPLIES = (
    faulty(call("write_file", file_path="/a.py", content="def f():\n    return 7\n")),
    faulty(
        Thought(text="Two files."),
        Text(text="I write both."),
        call("write_file", "c1", file_path="/a", content='say "hi" \\ {x}', mode=420),
        call("write_file", "c2", file_path="/b", content="zwölf Boxkämpfer 好", force=True),
        piece=3,
    ),
    faulty(
        call("write_file", file_path="/n.md", content="x" * 60 + "\n```\n}"), piece=20, pings=True
    ),
)


def bodies(wire: WireName) -> Iterator[tuple[bytes, bool]]:
    """Correct replies, and whether each is streamed."""
    for reply in REPLIES:
        for streamed in (True, False):
            facts = RequestFacts("m", Usage(input=9, output=9), streamed)
            yield b"".join(encode_body(wire, reply, facts).pieces), streamed


def decoded(wire: Wire, body: bytes, *, streamed: bool, chunk: int) -> Message:
    if not streamed:
        return wire.decode_reply(body)
    decoder = wire.stream_decoder()
    for at in range(0, len(body), chunk):
        decoder.feed(body[at : at + chunk])
    decoder.close()
    return decoder.message()


def calls_that_run(reply: Message) -> list[ToolCall]:
    if judge_reply(reply).outcome != "calls":
        return []
    calls = [part for part in reply.parts if isinstance(part, ToolCall)]
    cut = cut_call(reply)
    return [
        each
        for each in calls
        if each is not cut
        and each.name == write_file.name
        and not write_file.problem_with(each.arguments)
    ]


def run_mutations(name: WireName, count: int, seed: int) -> Counter[str]:
    rng, wire = random.Random(seed), WIRES[name]
    known = [*bodies(name)]
    everything = [body for body, _ in known]
    sources = [(mutations(body, rng, everything), streamed) for body, streamed in known]
    seen: Counter[str] = Counter()
    for number in range(count):
        source, streamed = sources[number % len(sources)]
        body = next(source)
        try:
            reply = decoded(wire, body, streamed=streamed, chunk=rng.choice((7, 64, 4_096)))
        except RecollectError:
            seen["refused"] += 1
            continue
        run = calls_that_run(reply)
        for each in run:
            assert occurs(json.loads(each.arguments), body), (body, each.arguments)
        seen["ran" if run else "not run"] += 1
    return seen


@pytest.mark.parametrize("wire", FORMATS)
def test_every_undamaged_reply_runs(wire: WireName) -> None:
    for (body, streamed), reply in zip(
        bodies(wire), (each for each in REPLIES for _ in range(2)), strict=True
    ):
        message = decoded(WIRES[wire], body, streamed=streamed, chunk=64)
        assert len(calls_that_run(message)) == sum(
            isinstance(step, ToolCall) for step in turn_steps(reply)
        )


def turn_steps(reply: WireReply) -> tuple[object, ...]:
    return reply.turn.steps


@pytest.mark.parametrize("wire", FORMATS)
def test_no_mutated_reply_runs_an_argument_that_was_not_written(wire: WireName) -> None:
    seen = run_mutations(wire, 1_500, seed=1)
    assert min(seen.values()) > 15, seen


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("wire", FORMATS)
def test_none_of_a_hundred_thousand_runs_an_argument_that_was_not_written(wire: WireName) -> None:
    seen = run_mutations(wire, 100_000, seed=2)
    assert min(seen.values()) > 1_000, seen
