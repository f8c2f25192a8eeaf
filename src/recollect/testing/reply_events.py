"""A `WireReply` in the words of one provider: the events of a stream, or one JSON document.

The codecs encode a correct reply, with stand-ins for its texts and arguments; these are put in
afterwards, as they are written in the script and in pieces of the wanted size, and faults change
the fields around them. Arguments need not be JSON: in the formats that embed them (Gemini, and
Anthropic in one piece) the reply is then broken JSON itself, as it is when a provider breaks.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from recollect.codecs.anthropic import AnthropicWire
from recollect.codecs.gemini import GeminiWire
from recollect.codecs.openai import OpenAIWire
from recollect.codecs.wire_protocol import Wire
from recollect.entries import Message, Part, Text, Thought, ToolCall, Usage
from recollect.models.model_protocol import Retrying
from recollect.profiles import WireName
from recollect.testing.scripted_model import Turn, says
from recollect.testing.wire_reply import WireReply

_PIECES = 200  # at most so many events for one text, so that 9 MB are not a million events
_FINISHES = frozenset({"stop", "length", "calls", "safety", "other"})
# A stand-in: as embedded JSON, or as a text. A text of the script that looks like one is not
# searched again.
_EMBEDDED = re.compile(r'\{"\ue000(\d+)\.\d+\ue001":0\}')
_TOKEN = re.compile(rf"{_EMBEDDED.pattern}|\ue000(\d+)\.\d+\ue001")
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
    arguments_are_text: bool = False  # a JSON string that holds JSON
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
        arguments_are_text=True,
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
    message, script = _stand_in(reply.turn, model, usage, dialect)
    found: list[ReplyEvent] = []
    for value in _decode_events(dialect.wire.encode_stream(message)):
        over = bool(found) and found[-1].carries == "end"
        if isinstance(value, str):
            found.append(ReplyEvent(value, "end"))
            continue
        carries: Literal["", "end"] = "end" if over or _has_finish(value, dialect) else ""
        _restore_strings(value, script)
        for piece in _split_texts(value, dialect, reply.piece):
            data = _encode(_edit(piece, reply, dialect), script)
            found.append(ReplyEvent(data, carries or _contents(piece, dialect)))
    return list(_with_ending(found, reply, dialect))


def encode_whole(format_: WireName, reply: WireReply, model: str, usage: Usage) -> str:
    """The reply as one JSON document."""
    if reply.events or reply.error_event:
        return reply.error_event or reply.events[-1]
    dialect = DIALECTS[format_]
    message, script = _stand_in(reply.turn, model, usage, dialect)
    value = json.loads(dialect.wire.encode_reply(message))
    _restore_strings(value, script)
    return _encode(_edit(value, reply, dialect), script)


def encode_more_text(format_: WireName, text: str) -> str:
    """The data of an event with this text, to follow the last text of a reply."""
    events = encode_events(format_, WireReply(turn=says("x")), "", Usage())
    value = json.loads(next(event.data for event in events if event.carries == "text"))
    for owner, key, path in _fields(value):
        if owner[key] == "x" and any(_matches(path, each) for each in DIALECTS[format_].texts):
            owner[key] = text
    return _encode(value, [])


def _stand_in(
    turn: Turn, model: str, usage: Usage, dialect: Dialect
) -> tuple[Message, Sequence[str]]:
    """The turn as a message that the codec accepts as it is, and the strings for its stand-ins."""
    script: list[str] = []

    def token(text: str) -> str:
        script.append(text)
        # the checksum because codecs derive a reply's id from what it says
        return f"\ue000{len(script) - 1}.{zlib.crc32(text.encode('utf-8', 'replace'))}\ue001"

    parts: list[Part] = []
    for step in turn.steps:
        if isinstance(step, Retrying):
            raise TypeError("a provider cannot say `Retrying`; script the two replies instead")
        if isinstance(step, ToolCall):
            name = token(step.arguments)
            in_text = dialect.arguments_are_text
            arguments = name if in_text else f'{{"{name}":0}}'
            parts.append(msgspec.structs.replace(step, arguments=arguments))
        elif isinstance(step, Text | Thought) and step.text:
            parts.append(msgspec.structs.replace(step, text=token(step.text)))
        else:
            parts.append(step)
    calls = any(isinstance(part, ToolCall) for part in parts)
    finish = turn.finish if turn.finish in _FINISHES else "calls" if calls else "stop"
    counted = turn.usage or usage
    message = Message(role="model", parts=tuple(parts), model=model, finish=finish, usage=counted)
    return message, script


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


def _restore_strings(value: Any, script: Sequence[str]) -> None:
    """Puts the script's texts in, and arguments where they are sent as text."""
    for owner, key, _ in _fields(value):
        if isinstance(owner[key], str) and "\ue000" in owner[key]:
            owner[key] = _TOKEN.sub(lambda found: script[int(found[1] or found[2])], owner[key])


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


def _encode(value: Any, script: Sequence[str]) -> str:
    """As JSON, with arguments as they are written where the format embeds them."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if any(key in _OPAQUE for _, key, _ in _fields(value)):
        text = _EMBEDDED.sub(lambda found: _one_line(script[int(found[1])]), text)
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
