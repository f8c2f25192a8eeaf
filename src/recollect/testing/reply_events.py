"""A `WireReply` in the words of one provider: the events of a stream, or one JSON document.

The codecs encode a correct reply; faults change what they encoded. A call's arguments are sent as
they are written in the script, also where they are no JSON object: in the formats that embed
arguments as JSON (Gemini, and Anthropic in one piece) such a reply is broken JSON itself, as it is
when a provider breaks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.foreign_json import parse_object
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import Wire
from recollect.entries import Message, Part, ToolCall, Usage
from recollect.models.model_protocol import Retrying
from recollect.profiles import WireName
from recollect.testing.scripted_model import Turn
from recollect.testing.wire_reply import WireReply

_PIECES = 200  # at most so many events for one text, so that 9 MB are not a million events
_FINISHES = frozenset({"stop", "length", "calls", "safety", "other"})
_OPAQUE = frozenset({"args", "input"})  # a tool's arguments: their fields are not the provider's
_NO_BREAKS = str.maketrans("\r\n", "  ")


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider's reply says what; fields are named as in `WireReply.put`."""

    wire: Wire
    finish: str
    finish_is_optional: bool = False  # left out if there is none, else null
    markers: tuple[str, ...] = ()  # what an event that only says that the stream ends begins with
    texts: tuple[str, ...]  # fields that arrive in pieces
    arguments: tuple[str, ...]
    line_end: str = "\n"
    named_events: bool = False  # the event's name repeats the `type` in its data


DIALECTS: Mapping[WireName, Dialect] = {
    "gemini": Dialect(
        wire=GeminiWire(),
        finish="candidates.finishReason",
        finish_is_optional=True,
        texts=("parts.text",),
        arguments=("functionCall.args",),
        line_end="\r\n",
    ),
    "openai": Dialect(
        wire=OpenAIWire(),
        finish="choices.finish_reason",
        markers=("[DONE]",),
        texts=("delta.content", "delta.reasoning_content", "function.arguments"),
        arguments=("function.arguments",),
    ),
    "anthropic": Dialect(
        wire=AnthropicWire(),
        finish="stop_reason",
        markers=('{"type":"message_stop"',),
        texts=("delta.text", "delta.thinking", "delta.partial_json"),
        arguments=("delta.partial_json", "content.input"),
        named_events=True,
    ),
}


class ReplyEvent(NamedTuple):
    """The data of one event; `carries` says what of the reply is in it."""

    data: str
    carries: Literal["", "text", "arguments", "end"] = ""


def encode_events(
    format_: WireName, reply: WireReply, model: str, usage: Usage
) -> list[ReplyEvent]:
    """The events of a stream, in order; those of the ending carry `end`."""
    if reply.events:
        return [ReplyEvent(_one_line(text)) for text in reply.events]
    dialect = DIALECTS[format_]
    message, verbatim = _message(reply.turn, model, usage, dialect)
    found: list[ReplyEvent] = []
    for value in _decode_events(dialect.wire.encode_stream(message)):
        over = bool(found) and found[-1].carries == "end"
        if isinstance(value, str):
            found.append(ReplyEvent(value, "end"))
            continue
        carries: Literal["", "end"] = "end" if over or _has_finish(value, dialect) else ""
        _restore_strings(value, verbatim)
        for piece in _split_texts(value, dialect, reply.piece):
            data = _encode(_edit(piece, reply, dialect), verbatim)
            found.append(ReplyEvent(data, carries or _contents(piece, dialect)))
    return list(_with_ending(found, reply, dialect))


def encode_whole(format_: WireName, reply: WireReply, model: str, usage: Usage) -> str:
    """The reply as one JSON document."""
    if reply.events or reply.error_event:
        return reply.error_event or reply.events[-1]
    dialect = DIALECTS[format_]
    message, verbatim = _message(reply.turn, model, usage, dialect)
    value = json.loads(dialect.wire.encode_reply(message))
    return _encode(_edit(value, reply, dialect), verbatim)


def encode_texts(format_: WireName, text: str) -> str:
    """The data of one event that carries this text, for replies that never end."""
    events = encode_events(format_, WireReply(turn=Turn(), piece=len(text)), "", Usage())
    if format_ == "anthropic":
        delta = {"type": "text_delta", "text": text}
        return _encode({"type": "content_block_delta", "index": 0, "delta": delta}, {})
    value = json.loads(events[0].data)
    for owner, key, path in _fields(value):
        if path in ("candidates.content.parts.text", "choices.delta.content"):
            owner[key] = text
        elif _matches(path, DIALECTS[format_].finish):
            owner[key] = None
    return _encode(value, {})


def _message(
    turn: Turn, model: str, usage: Usage, dialect: Dialect
) -> tuple[Message, dict[str, str]]:
    """The turn as a message that the codec accepts, and the arguments that it would change."""
    verbatim: dict[str, str] = {}
    parts: list[Part] = []
    for step in turn.steps:
        if isinstance(step, Retrying):
            raise TypeError("a provider cannot say `Retrying`; script the two replies instead")
        # OpenAI carries arguments as a string, whatever is in it
        as_json = isinstance(step, ToolCall) and not isinstance(dialect.wire, OpenAIWire)
        if as_json and isinstance(step, ToolCall) and parse_object(step.arguments) is None:
            stand_in = f'{{"verbatim-{len(verbatim)}":0}}'
            verbatim[stand_in] = step.arguments
            parts.append(msgspec.structs.replace(step, arguments=stand_in))
        else:
            parts.append(step)
    calls = any(isinstance(part, ToolCall) for part in parts)
    finish = turn.finish if turn.finish in _FINISHES else "calls" if calls else "stop"
    message = Message(
        role="model", parts=tuple(parts), model=model, finish=finish, usage=turn.usage or usage
    )
    return message, verbatim


def _decode_events(events: Iterator[bytes]) -> Iterator[Any]:
    for event in events:
        data = event.decode().partition("data: ")[2].strip()
        yield json.loads(data) if data.startswith("{") else data


def _fields(value: Any) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every object's keys, each with its path; lists add nothing to a path."""
    waiting: list[tuple[Any, str]] = [(value, "")]
    while waiting:
        found, path = waiting.pop()
        if isinstance(found, list):
            waiting += [(item, path) for item in reversed(found)]
        elif isinstance(found, dict):
            for key in list(found):
                below = f"{path}.{key}" if path else key
                yield found, key, below
                if key in found and key not in _OPAQUE:
                    waiting.append((found[key], below))


def _matches(path: str, field: str) -> bool:
    return path == field or path.endswith(f".{field}")


def _has_finish(value: Any, dialect: Dialect) -> bool:
    return any(
        owner[key] is not None and _matches(path, dialect.finish)
        for owner, key, path in _fields(value)
    )


def _contents(value: Any, dialect: Dialect) -> Literal["", "text", "arguments"]:
    carried: Literal["", "text", "arguments"] = ""
    for owner, key, path in _fields(value):
        if owner[key] and any(_matches(path, field) for field in dialect.arguments):
            return "arguments"
        if owner[key] and any(_matches(path, field) for field in dialect.texts):
            carried = "text"
    return carried


def _restore_strings(value: Any, verbatim: Mapping[str, str]) -> None:
    """Anthropic streams arguments as pieces of text: any text fits there."""
    for owner, key, _ in _fields(value):
        if isinstance(owner[key], str) and owner[key] in verbatim:
            owner[key] = verbatim[owner[key]]


def _split_texts(value: Any, dialect: Dialect, piece: int) -> Iterator[Any]:
    for owner, key, path in _fields(value):
        text = owner[key]
        if not isinstance(text, str) or "thoughtSignature" in owner:
            continue
        size = max(piece, len(text) // _PIECES + 1)
        if len(text) > size and any(_matches(path, field) for field in dialect.texts):
            for start in range(0, len(text), size):
                owner[key] = text[start : start + size]
                yield value
            return
    yield value


def _edit(value: Any, reply: WireReply, dialect: Dialect) -> Any:
    for owner, key, path in _fields(value):
        if _matches(path, dialect.finish) and owner[key] is not None:
            owner[key] = reply.finish or owner[key]
            if reply.end in ("marker", "none"):
                owner[key] = None
            if reply.finish_message:
                owner["finishMessage"] = reply.finish_message
            if owner[key] is None and dialect.finish_is_optional:
                del owner[key]
                continue
        for field, data in reply.put:
            if _matches(path, field):
                owner[key] = json.loads(data)
        if any(_matches(path, field) for field in reply.drop):
            del owner[key]
    return value


def _encode(value: Any, verbatim: Mapping[str, str]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for stand_in, arguments in verbatim.items():
        text = text.replace(stand_in, _one_line(arguments))
    return text


def _one_line(text: str) -> str:
    return text.translate(_NO_BREAKS)


def _with_ending(
    events: Sequence[ReplyEvent], reply: WireReply, dialect: Dialect
) -> Iterator[ReplyEvent]:
    yield from (event for event in events if event.carries != "end")
    if reply.error_event:
        yield ReplyEvent(_one_line(reply.error_event), "end")
        return
    for event in events:
        if event.carries != "end" or reply.end == "none":
            continue
        if reply.end == "word" and event.data.startswith(dialect.markers):
            continue
        yield event
