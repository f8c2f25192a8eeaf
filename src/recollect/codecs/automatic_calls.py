"""What is new in the history of automatic calls that came with a reply.

Google's SDK can run tools by itself. Its reply then carries all that was sent and, after it, each
call and result. Only those belong to this turn: everything since the user spoke last. What the
session holds of them (a stream brings the calls as well as the history) is not given again. Calls
without an id get one, and results that of the call they answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from recollect.codecs.foreign_json import parse_object
from recollect.codecs.reply_assembly import CallIds
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult
from recollect.view.curation import is_spoken


def unrecorded_calls(recorded: Sequence[Message], history: Sequence[Message]) -> list[Message]:
    """The messages of this turn that the session lacks, oldest first."""
    start = _turn_start(history)
    prompt = history[start - 1] if start else None
    spoken = _turn_start(recorded)
    asked = recorded[spoken - 1] if spoken else None
    is_same = prompt is None or (asked is not None and _asks_the_same(prompt, asked))
    turn = _Turn(_calls(recorded), recorded[spoken:] if is_same else ())
    found = (turn.without_recorded(message) for message in history[start:])
    return [message for message in found if message.parts]


def _turn_start(messages: Sequence[Message]) -> int:
    """The index after the newest message that the user said."""
    newest = reversed(range(len(messages)))
    return next((n + 1 for n in newest if is_spoken(messages[n])), 0)


def _asks_the_same(sent: Message, asked: Message) -> bool:
    """Whether a prompt was sent, perhaps merged with what stood before or after it."""
    texts = [part.text for part in sent.parts if isinstance(part, Text)]
    return all(part.text in texts for part in asked.parts if isinstance(part, Text))


def _calls(messages: Sequence[Message]) -> list[ToolCall]:
    parts = (part for message in messages for part in message.parts)
    return [part for part in parts if isinstance(part, ToolCall)]


class _Turn:
    """Walks through a turn twice at once: as it is recorded, and as the history has it."""

    def __init__(self, known: Sequence[ToolCall], recorded: Sequence[Message]) -> None:
        self._ids = CallIds(call.id for call in known)
        self._left = [part for message in recorded for part in message.parts]
        texts = [part.text for part in self._left if isinstance(part, Text | Thought)]
        self._text = "".join(texts)
        self._open: list[ToolCall] = []  # without a result so far

    def without_recorded(self, message: Message) -> Message:
        kept = (self._take(part) for part in message.parts)
        return replace(message, parts=tuple(part for part in kept if part is not None))

    def _take(self, part: Part) -> Part | None:
        """The part as it is to be recorded; None if it is."""
        if isinstance(part, Text | Thought):
            return None if part.text in self._text else part
        place = next((n for n, other in enumerate(self._left) if _is_same(part, other)), None)
        new = place is None
        if place is not None:
            part = self._left[place]
            del self._left[: place + 1]
        if isinstance(part, ToolCall):
            part = part if part.id else replace(part, id=self._ids.assign(""))
            self._open.append(part)
        elif isinstance(part, ToolResult):
            part = self._answer(part)
        return part if new else None

    def _answer(self, result: ToolResult) -> ToolResult:
        by_id = (call for call in self._open if result.call_id and call.id == result.call_id)
        by_name = (call for call in self._open if not result.call_id and call.name == result.name)
        call = next(by_id, None) or next(by_name, None)
        if call is None:
            return result
        self._open.remove(call)
        return replace(result, call_id=call.id)


def _is_same(one: Part, recorded: Part) -> bool:
    if isinstance(one, ToolCall) and isinstance(recorded, ToolCall):
        same_id = one.id in ("", recorded.id)
        return same_id and one.name == recorded.name and _value(one) == _value(recorded)
    if isinstance(one, ToolResult) and isinstance(recorded, ToolResult):
        if one.call_id and recorded.call_id:
            return one.call_id == recorded.call_id
        return (one.name, one.content) == (recorded.name, recorded.content)
    return one == recorded


def _value(call: ToolCall) -> Any:
    found = parse_object(call.arguments)
    return call.arguments if found is None else found


def is_same_reply(one: Message, other: Message) -> bool:
    """Whether both are one complete reply; pieces of a stream may be equal by chance."""
    bare = msgspec.structs.replace(other, extra=one.extra)
    return one.role == "model" and one.finish != "" and one == bare
