"""What is new in the history of automatic calls that came with a reply.

Google's SDK can run tools by itself. Its reply then carries all that was sent and, after it, each
call and result. Only those belong to this turn: everything since the user spoke last. What the
session holds of them (a stream brings the calls as well as the history) is not given again. Calls
without an id get one, and results that of the call they answer.

A history is not trusted: it adds what a model said and called, and the results of these calls, and
nothing else. No words of a user or of the system, no result without its call, no call without its
result, which somebody might run.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from recollect.codecs.foreign_json import parse_object
from recollect.codecs.reply_assembly import AUTOMATIC_CALLS, CallIds
from recollect.entries import Message, Part, Text, Thought, ToolCall, ToolResult, json_text
from recollect.view.curation import is_spoken


class UnrecordedCalls(NamedTuple):
    """The messages of this turn that the session lacks, oldest first."""

    messages: tuple[Message, ...]
    refused: int = 0  # parts that nobody may add


def unrecorded_calls(
    recorded: Sequence[Message], history: Sequence[Message], offered: Container[str] = ()
) -> UnrecordedCalls:
    """What the history adds. Calls of tools that were `offered` are refused: only we run those."""
    start = _turn_start(history)
    prompt = history[start - 1] if start else None
    spoken = _turn_start(recorded)
    asked = recorded[spoken - 1] if spoken else None
    is_same = prompt is None or (asked is not None and _asks_the_same(prompt, asked))
    turn = _Turn(_calls(recorded), recorded[spoken:] if is_same else (), offered)
    found = [turn.without_recorded(message) for message in history[start:]]
    left = turn.unanswered
    kept = (_without(message, left) for message in found)
    return UnrecordedCalls(
        tuple(message for message in kept if message.parts), turn.refused + len(left)
    )


def _without(message: Message, calls: Sequence[ToolCall]) -> Message:
    if not calls:
        return message
    kept = (part for part in message.parts if not any(part is call for call in calls))
    return replace(message, parts=tuple(kept))


def take_history(reply: Message) -> tuple[str, Message]:
    """The history that a decoder left in a reply's `extra`, as JSON; and the reply without it."""
    extra = parse_object(reply.extra) if AUTOMATIC_CALLS in reply.extra else None
    if not extra or AUTOMATIC_CALLS not in extra:
        return "", reply
    history = str(extra.pop(AUTOMATIC_CALLS))
    return history, replace(reply, extra=json_text(extra) if extra else "")


def put_history(reply: Message, history: str) -> Message:
    """The reply with this history in its `extra`."""
    extra = {**(parse_object(reply.extra) or {}), AUTOMATIC_CALLS: history}
    return replace(reply, extra=json_text(extra)) if history else reply


def without_repeated(parts: Iterable[Part], history: Sequence[Message]) -> list[Part]:
    """The parts of a reply that are not in the history that came after them."""
    told = [part for message in history for part in message.parts]
    text = "".join(part.text for part in told if isinstance(part, Text | Thought))
    calls = {(part.id, part.name, _arguments(part)) for part in told if isinstance(part, ToolCall)}

    def is_repeated(part: Part) -> bool:
        if isinstance(part, Text | Thought):
            return part.text in text
        if not isinstance(part, ToolCall):
            return part in told
        about = part.name, _arguments(part)
        return (part.id, *about) in calls or ("", *about) in calls

    return [part for part in parts if not is_repeated(part)]


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

    def __init__(
        self, known: Sequence[ToolCall], recorded: Sequence[Message], offered: Container[str]
    ) -> None:
        self._ids = CallIds(call.id for call in known)
        self._left = [part for message in recorded for part in message.parts]
        self._keys = [_key(part) for part in self._left]
        texts = [part.text for part in self._left if isinstance(part, Text | Thought)]
        self._text = "".join(texts)
        self._offered = offered
        self._role = ""
        self._open: list[ToolCall] = []  # without a result so far
        self._new: list[ToolCall] = []
        self.refused = 0

    @property
    def unanswered(self) -> list[ToolCall]:
        """The calls that are new and have no result."""
        return [call for call in self._new if any(call is other for other in self._open)]

    def without_recorded(self, message: Message) -> Message:
        self._role = message.role
        kept = (self._take(part) for part in message.parts)
        return replace(message, parts=tuple(part for part in kept if part is not None))

    def _take(self, part: Part) -> Part | None:
        """The part as it is to be recorded; None if it is, or may not be."""
        if isinstance(part, Text | Thought) and part.text in self._text:
            return None
        key = _key(part)
        place = next((n for n, other in enumerate(self._keys) if _is_same(key, other)), None)
        if place is not None:
            found = self._left[place]
            del self._left[: place + 1], self._keys[: place + 1]
            if isinstance(found, ToolCall):
                self._open.append(found)
            elif isinstance(found, ToolResult):
                self._answer(found)
            return None
        taken = self._take_new(part)
        self.refused += taken is None
        return taken

    def _take_new(self, part: Part) -> Part | None:
        if isinstance(part, ToolResult):
            return self._answer(part) if self._role == "user" else None
        if self._role != "model" or not isinstance(part, ToolCall):
            return part if self._role == "model" else None
        if part.name in self._offered:
            return None
        call = part if part.id else replace(part, id=self._ids.assign(""))
        self._open.append(call)
        self._new.append(call)
        return call

    def _answer(self, result: ToolResult) -> ToolResult | None:
        by_id = (call for call in self._open if result.call_id and call.id == result.call_id)
        by_name = (call for call in self._open if not result.call_id and call.name == result.name)
        call = next(by_id, None) or next(by_name, None)
        if call is None:
            return None
        self._open = [other for other in self._open if other is not call]
        return replace(result, call_id=call.id)


class _Key(NamedTuple):
    """What two parts have in common if they are one; an id may be missing on either side."""

    kind: type[Part]
    id: str
    name: str
    value: object


def _key(part: Part) -> _Key:
    if isinstance(part, ToolCall):
        return _Key(ToolCall, part.id, part.name, _arguments(part))
    if isinstance(part, ToolResult):
        return _Key(ToolResult, part.call_id, part.name, part.content)
    return _Key(type(part), "", "", part)


def _is_same(one: _Key, recorded: _Key) -> bool:
    if one.kind is not recorded.kind:
        return False
    if one.kind is ToolResult and one.id and recorded.id:
        return one.id == recorded.id
    same_id = one.kind is not ToolCall or one.id in ("", recorded.id)
    return same_id and one[2:] == recorded[2:]


def _arguments(call: ToolCall) -> str:
    """Written in one way, whatever the order of their keys."""
    found = parse_object(call.arguments)
    return call.arguments if found is None else json.dumps(found, sort_keys=True)


def is_same_reply(one: Message, other: Message) -> bool:
    """Whether both are one complete reply; pieces of a stream may be equal by chance."""
    bare = msgspec.structs.replace(other, extra=one.extra)
    return one.role == "model" and one.finish != "" and one == bare
