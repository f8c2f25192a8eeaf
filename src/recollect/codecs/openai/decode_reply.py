"""Reads replies in the OpenAI chat format, streamed or in one piece.

Any cutting of the bytes gives the same message and the same deltas. Only the first choice is read.
Calls are put together by index, by id or by order, whatever the server gives; one without an id
gets one by its position. An error in the stream is raised after the deltas before it were handed
out: with the next piece, or at the close.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.foreign_json import JSON_ERRORS, UnreadableJson, is_too_deep, join_surrogates
from recollect.codecs.openai.chunks import (
    CallDelta,
    FunctionDelta,
    MessageDelta,
    ReplyChunk,
    decode_chunk,
)
from recollect.codecs.openai.decode_parts import decode_part
from recollect.codecs.provider_errors import bad_reply_from, make_printable
from recollect.codecs.reply_assembly import PartialCall, ReplyAssembly
from recollect.codecs.sse import SseParser
from recollect.codecs.wire_protocol import Delta, Finish
from recollect.entries import Message, Part, Text, Thought, ToolCall, json_text
from recollect.errors import BadReply, ModelError

NO_DELTAS: tuple[Delta, ...] = ()
_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",  # Mistral
    "tool_calls": "calls",
    "tool_use": "calls",
    "function_call": "calls",
    "content_filter": "safety",
    "safety": "safety",
    "sensitive": "safety",  # GLM
}


def decode_reply(body: bytes) -> Message:
    reading = _ChunkReader()
    try:
        chunk = decode_chunk(body)
    except UnreadableJson as error:
        raise _bad(body, error) from None
    if not chunk.choices:
        raise BadReply("a reply without a choice")
    reading.take(chunk, [])
    return reading.message()


def _bad(data: bytes, error: UnreadableJson) -> BadReply:
    if data.lstrip()[:1] != b"{":
        return bad_reply_from(data)
    if error.is_deep:
        return BadReply(f"JSON {error}")
    return BadReply(f"half a JSON ({make_printable(data[:200].decode('utf-8', 'replace'), 60)})")


class OpenAIStreamDecoder:
    """Of one streamed reply."""

    __slots__ = ("_done", "_events", "_failure", "_feed", "_reading")

    def __init__(self) -> None:
        self._events = SseParser()
        self._feed = self._events.feed
        self._reading = _ChunkReader()
        self._done = False  # the server has said so
        self._failure: ModelError | None = None  # to be raised when asked for more

    def feed(self, data: bytes) -> Sequence[Delta]:
        found = self._feed(data)
        if not found:
            return NO_DELTAS
        return self._read(found)

    def close(self) -> Sequence[Delta]:
        deltas = self._read(self._events.close())
        stray = self._events.stray
        if not stray or self._done or self._reading.assembly.finish:
            return deltas
        if self._reading.is_untouched:
            return self._read_stray(stray)
        self._raise_error_in(stray)
        return deltas

    def message(self) -> Message:
        return self._reading.message()

    def _read(self, events: Sequence[bytes]) -> Sequence[Delta]:
        if self._failure is not None:
            raise self._failure
        deltas: list[Delta] = []
        try:
            for data in events:
                self._take(data, deltas)
        except ModelError as error:
            if not deltas:
                raise
            self._failure = error
        return deltas

    def _take(self, data: bytes, deltas: list[Delta]) -> None:
        if self._done:
            return
        try:
            chunk = decode_chunk(data)
        except UnreadableJson as error:
            word = data.strip()
            if word == b"[DONE]":
                self._done = True
            elif word:
                raise _bad(word, error) from None
            return
        self._reading.take(chunk, deltas)

    def _read_stray(self, stray: bytes) -> Sequence[Delta]:
        """No event came: a reply in one piece from a server that does not stream, or no reply."""
        deltas: list[Delta] = []
        try:
            chunk = decode_chunk(stray)
        except UnreadableJson as error:
            raise _bad(stray, error) from None
        if not chunk.choices:
            raise bad_reply_from(stray)
        self._reading.take(chunk, deltas)
        return deltas

    def _raise_error_in(self, stray: bytes) -> None:
        """Some servers tell of an error without the word `data` in front."""
        try:
            decode_chunk(stray)
        except UnreadableJson:
            return


class _ChunkReader:
    """What was read of one reply."""

    __slots__ = ("_calls", "_keys", "_last", "_refused", "_slots", "assembly", "is_untouched")

    def __init__(self) -> None:
        self.assembly = ReplyAssembly()
        self.is_untouched = True  # nothing that looks like a reply has come
        self._refused = False
        self._calls = 0
        self._slots: dict[int, PartialCall] = {}
        self._keys: dict[str, PartialCall] = {}  # by the server's id
        self._last: PartialCall | None = None

    def take(self, chunk: ReplyChunk, deltas: list[Delta]) -> None:
        self.is_untouched = False
        assembly = self.assembly
        if chunk.model and not assembly.model:
            assembly.model = chunk.model
        if chunk.usage is not None:
            assembly.usage = chunk.usage.usage()
        for choice in chunk.choices or ():
            if choice.index:
                continue
            if choice.delta is not None:
                self._take_piece(choice.delta, deltas)
            elif choice.message is not None:
                self._take_piece(choice.message, deltas, whole=True)
            if choice.finish_reason:
                self._finish(choice.finish_reason)
            if choice.usage is not None:
                assembly.usage = choice.usage.usage()

    def _finish(self, reason: str) -> None:
        found = _FINISHES.get(reason.lower()[:40])
        self.assembly.finish = found or "other"
        self.assembly.unknown_finish = "" if found else make_printable(reason, 100)

    def _take_piece(self, piece: MessageDelta, deltas: list[Delta], *, whole: bool = False) -> None:
        thought = piece.reasoning_content or piece.reasoning
        if thought:
            self._think(thought, deltas)
        if piece.reasoning_details is not None:
            self._take_details(piece.reasoning_details, deltas, told=bool(thought))
        content = piece.content
        if content:
            if isinstance(content, str):
                self._say(content, deltas)
            else:
                self._take_parts(content, deltas)
        if piece.refusal:
            self._refused = True
            self._say(piece.refusal, deltas)
        if piece.images:
            self._take_parts(piece.images, deltas)
        calls = piece.tool_calls
        if piece.function_call is not None:  # from before there were tools; never more than one
            calls = [CallDelta(index=0, function=piece.function_call)]
        for call in calls or ():
            self._take_call(call, deltas, whole=whole)

    def _say(self, text: str, deltas: list[Delta]) -> None:
        if not text:
            return
        self.assembly.text(text)
        deltas.append(Delta("text", text))

    def _think(self, text: str, deltas: list[Delta]) -> None:
        self.assembly.thought(text)
        deltas.append(Delta("thought", text))

    def _take_details(self, details: list[Any], deltas: list[Delta], *, told: bool) -> None:
        for detail in details:
            match detail:
                case {"text": str(text)} | {"summary": str(text)} if text and not told:
                    self._think(text, deltas)
            match detail:
                case {"signature": str(signature)} if signature:
                    self.assembly.sign(signature)

    def _take_parts(self, parts: list[Any], deltas: list[Delta]) -> None:
        for value in parts:
            match value:
                case {"type": "thinking", "thinking": str(thought)}:
                    self._think(thought, deltas)
                case {"type": "thinking", "thinking": list(inner)}:  # Mistral
                    for one in inner:
                        match one:
                            case {"text": str(thought)}:
                                self._think(thought, deltas)
                case str() | dict() if not is_too_deep(value):
                    part = decode_part(value)
                    if isinstance(part, Text):
                        self._say(part.text, deltas)
                    else:
                        self.assembly.add(part)

    # --- calls ---

    def _take_call(self, piece: CallDelta, deltas: list[Delta], *, whole: bool) -> None:
        function = piece.function or FunctionDelta()
        text, name = function.arguments or "", function.name or ""
        found = None if whole else self._known_call(piece.index, piece.id or "", name, text)
        calling = found or self._new_call()
        if piece.index is not None:
            self._slots[piece.index] = calling
        self._last = calling
        if piece.id and not calling.id:
            calling.id = piece.id
            self._keys.setdefault(piece.id, calling)
        first = bool(name) and not calling.name
        if first:
            calling.name = name
        if text:
            calling.pieces.append(text)
        if text or first:
            deltas.append(Delta("call", text, name if first else ""))

    def _known_call(self, index: int | None, id_: str, name: str, text: str) -> PartialCall | None:
        """The call that this is a piece of. Servers differ in what they tell: OpenAI gives the id
        once and the index always; others no index, whole calls, or index 0 for every call."""
        known = self._keys.get(id_) if id_ else None
        slot = self._last if index is None else self._slots.get(index)
        if slot is None and index is not None and name:
            return None  # also under an id that was given before: two calls, one careless server
        if known is not None and (index is None or slot is None or slot.id != id_):
            return known
        if slot is None or (name and slot.name and _is_another(slot, index, id_, text)):
            return None
        return slot

    def _new_call(self) -> PartialCall:
        self._calls += 1
        return self.assembly.call(self._calls)

    # --- the message ---

    def message(self) -> Message:
        message = self.assembly.message()
        parts = _with_ids([_whole(part) for part in message.parts])
        finish, extra = message.finish, message.extra
        if self.assembly.has_calls and finish == "stop":
            finish = "calls"
        elif finish == "calls" and not self.assembly.has_calls:
            finish, extra = "other", json_text({"finish_reason": "tool_calls"})
        if self._refused and finish == "stop":
            finish = "safety"
        return msgspec.structs.replace(message, parts=tuple(parts), finish=finish, extra=extra)


def _is_another(slot: PartialCall, index: int | None, id_: str, text: str) -> bool:
    """Whether a named piece begins another call in a slot that has a named one."""
    if id_ and slot.id:
        return id_ != slot.id
    if index is None:
        return True
    # index 0 for every call and no ids: another call if the one before came whole. Only the first
    # piece is looked at, so that the cost stays linear.
    if not text or len(slot.pieces) != 1:
        return False
    try:
        return isinstance(msgspec.json.decode(slot.pieces[0]), dict)
    except (*JSON_ERRORS, UnicodeError):
        return False


def _whole(part: Part) -> Part:
    if isinstance(part, Text | Thought) and not part.text.isascii():
        text = join_surrogates(part.text)
        return part if text is part.text else msgspec.structs.replace(part, text=text)
    return part


def _with_ids(parts: list[Part]) -> list[Part]:
    """Calls without an id are named by their position among the calls."""
    taken = {part.id for part in parts if isinstance(part, ToolCall)}
    number = 0
    for place, part in enumerate(parts):
        if not isinstance(part, ToolCall):
            continue
        number += 1
        if part.id:
            continue
        candidate, more = f"call-{number}", 0
        while candidate in taken:
            more += 1
            candidate = f"call-{number}.{more}"
        taken.add(candidate)
        parts[place] = msgspec.structs.replace(part, id=candidate)
    return parts
