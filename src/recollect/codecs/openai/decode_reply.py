"""A reply of the OpenAI chat format, in one piece or streamed, decoded while it arrives.

Only the first choice is read. Calls are put together by index, by id or by order, whatever the
server sends; one without an id gets one by its position. Any chunking of the bytes gives the same
message and the same deltas. An error in the stream is raised after the deltas before it were
returned: by the next `feed`, or by `close`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from recollect.codecs.call_arguments import unwrap_arguments
from recollect.codecs.foreign_json import JSON_ERRORS, UnreadableJson, is_too_deep, join_surrogates
from recollect.codecs.openai.chunks import (
    CallDelta,
    FunctionDelta,
    MessageDelta,
    ReplyChunk,
    decode_chunk,
)
from recollect.codecs.openai.decode_parts import decode_part
from recollect.codecs.provider_errors import bad_reply_from, unreadable_reply
from recollect.codecs.reply_assembly import PartialCall, ReplyAssembly
from recollect.codecs.sse import SseParser
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import Message, Part, Text, Thought, ToolCall
from recollect.errors import BadReply, ModelError


def decode_reply(body: bytes) -> Message:
    chunk = _decode_whole(body)
    if not chunk.choices:
        raise BadReply("a reply without a choice")
    decoder = OpenAIStreamDecoder()
    decoder.read(chunk, body)
    return decoder.message()


def _decode_whole(body: bytes) -> ReplyChunk:
    try:
        return decode_chunk(body)
    except UnreadableJson as error:
        raise unreadable_reply(body, error) from None


class OpenAIStreamDecoder:
    """Assembles one reply from its chunks."""

    def __init__(self) -> None:
        self._events = SseParser()
        self._feed = self._events.feed
        self._done = False  # the server has announced the end
        self._failure: ModelError | None = None  # raised by the next call
        self._assembly = ReplyAssembly()
        self._is_untouched = True  # no chunk has come
        self._reason = ""
        self._refused = False
        self._slots: dict[int, PartialCall] = {}
        self._keys: dict[str, PartialCall] = {}  # by the server's id
        self._last: PartialCall | None = None

    def feed(self, data: bytes) -> Sequence[Delta]:
        events = self._feed(data)
        if not events:
            return NO_DELTAS
        self._read_events(events)
        return self._assembly.take_deltas()

    def close(self) -> Sequence[Delta]:
        self._read_events(self._events.close())
        stray = self._events.stray
        if stray and not self._done and not self._reason:
            self._read_stray(stray)
        elif stray:
            self._assembly.refuse_stray(stray)
        return self._assembly.take_deltas()

    def _read_events(self, events: Sequence[bytes]) -> None:
        if self._failure is not None:
            raise self._failure
        try:
            for data in events:
                self._read_event(data)
        except ModelError as error:
            if not self._assembly.deltas:
                raise
            self._failure = error

    def _read_event(self, data: bytes) -> None:
        if self._done:
            return
        try:
            chunk = decode_chunk(data)
        except UnreadableJson as error:
            word = data.strip()
            if word == b"[DONE]":
                self._done = True
            elif word:
                raise unreadable_reply(word, error) from None
            return
        self.read(chunk, data)

    def _read_stray(self, stray: bytes) -> None:
        """A whole reply from a server that does not stream, or an error without `data` in front."""
        if not self._is_untouched:
            with suppress(UnreadableJson):
                decode_chunk(stray)  # raises the error
            return
        chunk = _decode_whole(stray)
        if not chunk.choices:
            raise bad_reply_from(stray)
        self.read(chunk, stray)
        self._done = True

    def read(self, chunk: ReplyChunk, data: bytes) -> None:
        """`data` is what the chunk was decoded from."""
        self._is_untouched = False
        assembly = self._assembly
        if chunk.model and not assembly.model:
            assembly.model = chunk.model
        if chunk.usage is not None:
            assembly.usage = chunk.usage.usage() or assembly.usage
        for choice in chunk.choices or ():
            if choice.index:
                assembly.skip_pieces(_count_pieces(choice.delta) + _count_pieces(choice.message))
                continue
            if choice.delta is not None:
                self._read_delta(choice.delta)
                assembly.skip_pieces(
                    _count_pieces(choice.message)
                )  # MiniMax repeats all at the end
            elif choice.message is not None:
                self._read_delta(choice.message, whole=True)
            if choice.finish_reason:
                self._reason = choice.finish_reason.lower()
            if choice.usage is not None:
                assembly.usage = choice.usage.usage() or assembly.usage
        assembly.check_pieces(data, "arguments")

    def _read_delta(self, delta: MessageDelta, *, whole: bool = False) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if thought:
            self._assembly.thought(thought)
        if delta.reasoning_details is not None:
            self._read_details(delta.reasoning_details, known=bool(thought))
        content = delta.content
        if content:
            if isinstance(content, str):
                self._assembly.text(content)
            else:
                self._read_parts(content)
        if delta.refusal:
            self._refused = True
            self._assembly.text(delta.refusal)
        if delta.images:
            self._read_parts(delta.images)
        calls = delta.tool_calls
        if delta.function_call is not None:  # from before there were tools; never more than one
            self._assembly.skip_pieces(_count_pieces(delta))
            calls = [CallDelta(index=0, function=delta.function_call)]
        for call in calls or ():
            self._read_call(call, whole=whole)

    def _read_details(self, details: list[Any], *, known: bool) -> None:
        for detail in details:
            match detail:
                case {"text": str(text)} | {"summary": str(text)} if text and not known:
                    self._assembly.thought(text)
            match detail:
                case {"signature": str(signature)} if signature:
                    self._assembly.sign(signature)

    def _read_parts(self, parts: list[Any]) -> None:
        for value in parts:
            match value:
                case {"type": "thinking", "thinking": str(thought)}:
                    self._assembly.thought(thought)
                case {"type": "thinking", "thinking": list(inner)}:  # Mistral
                    for one in inner:
                        match one:
                            case {"text": str(thought)}:
                                self._assembly.thought(thought)
                case str() | dict() if not is_too_deep(value):
                    part = decode_part(value)
                    if not isinstance(part, Text):
                        self._assembly.add(part)
                    elif part.text:
                        self._assembly.text(part.text)

    def _read_call(self, delta: CallDelta, *, whole: bool) -> None:
        function = delta.function or FunctionDelta()
        text, name = function.arguments or "", function.name or ""
        call = None if whole else self._find_call(delta.index, delta.id or "", name, text)
        if call is None:
            call = PartialCall()
            self._assembly.add(call)
        if delta.index is not None:
            self._slots[delta.index] = call
        self._last = call
        if delta.id and not call.id:
            call.id = delta.id
            self._keys.setdefault(delta.id, call)
        first = bool(name) and not call.name
        if first:
            call.name = name
        if text or first:
            self._assembly.extend_call(call, text, name if first else "")

    def _find_call(self, index: int | None, id_: str, name: str, text: str) -> PartialCall | None:
        """The call that this delta continues. OpenAI sends the id once and the index always; other
        servers send no index, whole calls, or index 0 for every call."""
        known = self._keys.get(id_) if id_ else None
        slot = self._last if index is None else self._slots.get(index)
        if slot is None and index is not None and name:
            return None  # even under a known id: two calls of one careless server
        if known is not None and (index is None or slot is None or slot.id != id_):
            return known
        if slot is None or (name and slot.name and _begins_another(slot, index, id_, text)):
            return None
        return slot

    def message(self) -> Message:
        announced = self._done and not self._is_untouched
        self._assembly.end("openai", self._reason or ("stop" if announced else ""))
        message = self._assembly.message()
        parts = _assign_ids([_join_halves(part) for part in message.parts])
        refused = self._refused and message.finish == "stop"
        finish = "safety" if refused else message.finish
        return msgspec.structs.replace(message, parts=tuple(parts), finish=finish)


def _count_pieces(delta: MessageDelta | None) -> int:
    """How many calls of a message have arguments."""
    calls = delta.tool_calls if delta is not None else None
    return sum(1 for call in calls or () if call.function is not None and call.function.arguments)


def _begins_another(slot: PartialCall, index: int | None, id_: str, text: str) -> bool:
    """Whether a named delta begins another call in a slot that has a named one."""
    if id_ and slot.id:
        return id_ != slot.id
    if index is None:
        return True
    # index 0 for every call and no ids: another call if the one before came whole. Only its first
    # piece is checked, so that the cost stays linear.
    if not text or len(slot.pieces) != 1:
        return False
    try:
        return isinstance(msgspec.json.decode(slot.pieces[0]), dict)
    except JSON_ERRORS:
        return False


def _join_halves(part: Part) -> Part:
    if isinstance(part, Text | Thought) and not part.text.isascii():
        text = join_surrogates(part.text)
        return part if text is part.text else msgspec.structs.replace(part, text=text)
    if isinstance(part, ToolCall):  # a model may copy what it was sent
        return msgspec.structs.replace(part, arguments=unwrap_arguments(part.arguments))
    return part


def _assign_ids(parts: list[Part]) -> list[Part]:
    """Calls without an id are named by their position among the calls."""
    calls = [(place, part) for place, part in enumerate(parts) if isinstance(part, ToolCall)]
    taken = {call.id for _, call in calls}
    for number, (place, call) in enumerate(calls, 1):
        if call.id:
            continue
        candidate, more = f"call-{number}", 0
        while candidate in taken:
            more += 1
            candidate = f"call-{number}.{more}"
        taken.add(candidate)
        parts[place] = msgspec.structs.replace(call, id=candidate)
    return parts
