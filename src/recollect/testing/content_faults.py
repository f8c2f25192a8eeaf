"""Replies whose end is in order, and whose contents are not."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from recollect.entries import Thought, ToolCall
from recollect.profiles import WireName
from recollect.testing.fault import Fault, fault
from recollect.testing.wire_reply import WireReply, faulty

_MANY_CALLS, _LARGE_ARGUMENTS = 1_001, 9_000_000
_INVISIBLE = "\u200b\u2060\ufeff \u00ad\u3164\n"
_IDS = ("tool_calls.id", "content_block.id", "content.id", "functionCall.id")


def _with_arguments(change: Callable[[str], str]) -> Callable[[WireName, ToolCall], WireReply]:
    """A call whose arguments are what `change` makes of the sample's."""

    def build(_: WireName, sample: ToolCall) -> WireReply:
        changed = msgspec.structs.replace(sample, arguments=change(sample.arguments))
        return faulty("I look.", changed)

    return build


def _renamed(sample: ToolCall, **fields: str) -> ToolCall:
    return msgspec.structs.replace(sample, **fields)


def _many_calls(_: WireName, sample: ToolCall) -> WireReply:
    return faulty(*(_renamed(sample, id=f"call-{n}") for n in range(_MANY_CALLS)))


def _two_calls(_: WireName, sample: ToolCall) -> WireReply:
    return faulty(_renamed(sample, id="call-1"), _renamed(sample, id="call-2"), put=_INDEX_0)


_INDEX_0 = {"tool_calls.index": "0"}

EMPTY_FAULTS: tuple[Fault, ...] = (
    fault("empty-text", "ask again", "a reply that says nothing", faulty("")),
    fault(
        "thoughts-only",
        "ask again",
        "thoughts, and no text",
        faulty(Thought(text="I should look at the notes.", signature="c2lnbmF0dXJl")),
    ),
    fault("invisible-text", "ask again", "invisible characters only", faulty(_INVISIBLE)),
    fault(
        "no-parts",
        "ask again",
        "a content without parts",
        faulty(drop=("content.parts",)),
        ("gemini",),
    ),
    fault(
        "no-content",
        "ask again",
        "a candidate without content",
        faulty(drop=("content",)),
        ("gemini",),
    ),
)

CALL_FAULTS: tuple[Fault, ...] = (
    fault(
        "broken-arguments",
        "ask again",
        "arguments with garbage in the place of a value",
        _with_arguments(lambda text: text[:-1] + ',"content": ,,,]]'),
        ("openai", "anthropic"),
    ),
    fault(
        "incomplete-arguments",
        "ask again",
        "arguments that end inside a string, in a reply that ends in order",
        _with_arguments(lambda text: text[:-3]),
        ("openai", "anthropic"),
    ),
    fault(
        "doubled-arguments",
        "ask again",
        "the whole arguments twice, one after the other",
        _with_arguments(lambda text: text + text),
        ("openai", "anthropic"),
    ),
    fault(
        "broken-event",
        "interrupted",
        "an event that is not JSON, because a call's arguments are not",
        _with_arguments(lambda text: text[:-1] + ',"content": ,,,]]'),
        ("gemini",),
    ),
    fault(
        "list-arguments", "ask again", "arguments that are a list", _with_arguments(lambda _: "[1]")
    ),
    fault(
        "text-arguments",
        "ask again",
        "arguments that are a text",
        _with_arguments(lambda _: '"notes.txt"'),
    ),
    fault(
        "unknown-tool",
        "ask again",
        "a call of a tool that nobody declared",
        lambda _, sample: faulty(_renamed(sample, name="summon_dragon")),
    ),
    fault(
        "no-ids",
        "calls",
        "two calls without ids",
        lambda _, sample: faulty(sample, _renamed(sample, id="call-2"), drop=_IDS),
    ),
    fault(
        "same-ids",
        "calls",
        "two calls with one id",
        lambda _, sample: faulty(sample, sample),
    ),
    fault("index-0", "calls", "two calls, both with the index 0", _two_calls, ("openai",)),
    fault(
        "arguments-in-pieces",
        "calls",
        "an event for every character of the arguments",
        lambda _, sample: faulty("I look.", sample, piece=1),
    ),
    fault("many-calls", "error", f"{_MANY_CALLS:,} calls in one reply", _many_calls),
    fault(
        "large-arguments",
        "error",
        "9 MB of arguments in one call",
        _with_arguments(lambda text: f'{text[:-1]},"content":"{"x" * _LARGE_ARGUMENTS}"}}'),
    ),
)
