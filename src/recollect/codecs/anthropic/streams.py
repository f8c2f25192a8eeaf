"""Anthropic's streamed replies, read as they arrive.

Guarantees: however the bytes are cut, the message and the pieces shown add up to the same. Blocks
of a type that is not known here are kept whole, as `Unknown`; events that are not known are passed
over, as the API's documentation asks. An error inside the stream is raised; a whole reply or an
error that came instead of events is understood; anything else that came is named. Linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.anthropic.blocks import MALFORMED, json_object
from recollect.codecs.anthropic.reading import (
    Block,
    Ids,
    raw_text,
    read_block,
    read_json,
    read_part,
    unwrapped,
)
from recollect.codecs.anthropic.replies import (
    Counts,
    Problem,
    finish_of,
    problem,
    read_reply,
    unreadable,
    usage_of,
)
from recollect.codecs.assembling import Assembly, Calling
from recollect.codecs.events import Events
from recollect.codecs.failures import no_reply
from recollect.codecs.wire import Delta
from recollect.entries import Message, Text, Thought, ToolCall, Unknown, json_text
from recollect.errors import BadInput, BadReply

_NO_JSON = msgspec.Raw(b"")
_NO_DELTAS: tuple[Delta, ...] = ()
_KNOWN = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "error",
    }
)


class _Piece(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = ""
    partial_json: str | None = ""
    thinking: str | None = ""
    signature: str | None = ""
    stop_reason: str | None = None


class _Started(msgspec.Struct, gc=False):
    model: str | None = None
    usage: Counts | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: _Piece | None = None
    content_block: msgspec.Raw = _NO_JSON
    message: _Started | None = None
    usage: Counts | None = None
    error: Problem | None = None


class _Tag(msgspec.Struct, gc=False):
    type: str = ""


class _Held:
    """A block of a type that is not known here, which comes in pieces."""

    def __init__(self, block: dict[str, Any]) -> None:
        self.block, self.pieces = block, list[str]()

    def part(self) -> Unknown:
        text = "".join(self.pieces)
        if not text:
            return Unknown(data=json_text(self.block))
        given = json_object(text)
        return Unknown(
            data=json_text(self.block | {"input": {MALFORMED: text} if given is None else given})
        )


_decoder = msgspec.json.Decoder(_Event)
_tag_decoder = msgspec.json.Decoder(_Tag)
_decode = _decoder.decode


class StreamDecoder:
    def __init__(self) -> None:
        self._events = Events()
        self._assembly = Assembly()
        self._feed = self._events.feed
        self._has_events = False
        self._whole: Message | None = None  # a reply in one piece came instead of events
        self._reason = ""
        self._start: Counts | None = None
        self._end: Counts | None = None
        self._ids = Ids()
        self._calls: dict[int, Calling] = {}
        self._inputs: dict[int, str] = {}  # arguments that came with a call's beginning
        self._held: dict[int, _Held] = {}
        self._signature: list[str] = []  # of the thought that is open

    def feed(self, data: bytes) -> Sequence[Delta]:
        found = self._feed(data)
        return self._take_all(found) if found else _NO_DELTAS

    def close(self) -> Sequence[Delta]:
        deltas = self._take_all(self._events.close())
        for index in sorted({*self._inputs, *self._held}):
            self._stop(index, deltas)
        if not self._has_events:
            self._take_whole(self._events.stray, deltas)
        return deltas

    def message(self) -> Message:
        if self._whole is not None:
            return self._whole
        self._sign()
        assembly = self._assembly
        assembly.finish, assembly.unknown_finish = finish_of(
            self._reason, has_calls=assembly.has_calls
        )
        assembly.usage = usage_of([c for c in (self._start, self._end) if c is not None])
        return assembly.message()

    def _take_whole(self, body: bytes, deltas: list[Delta]) -> None:
        """Some servers answer in one piece whatever they were asked for."""
        if not body.strip():
            return
        if not body.lstrip().startswith(b"{"):
            raise no_reply(body)
        self._whole = read_reply(body)
        for part in self._whole.parts:
            if isinstance(part, Text):
                deltas.append(Delta("text", part.text))
            elif isinstance(part, Thought) and part.text:
                deltas.append(Delta("thought", part.text))
            elif isinstance(part, ToolCall):
                deltas.append(Delta("call", part.arguments, part.name))

    def _take_all(self, events: Sequence[bytes]) -> list[Delta]:
        self._has_events = self._has_events or bool(events)
        deltas: list[Delta] = []
        for event in events:
            self._take(event, deltas)
        return deltas

    def _take(self, data: bytes, deltas: list[Delta]) -> None:
        try:
            event = _decode(data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            careful = _read_carefully(data)
            if careful is None:
                return
            event = careful
        kind, piece = event.type, event.delta
        if kind == "content_block_delta" and piece is not None:
            if piece.type == "text_delta":
                if piece.text:
                    if self._signature:
                        self._sign()
                    self._assembly.text(piece.text)
                    deltas.append(Delta("text", piece.text))
            else:
                self._add(event.index, piece, deltas)
        else:
            self._change(event, deltas)

    def _add(self, index: int, piece: _Piece, deltas: list[Delta]) -> None:
        if piece.type == "thinking_delta":
            if piece.thinking:
                self._assembly.thought(piece.thinking)
                deltas.append(Delta("thought", piece.thinking))
        elif piece.type == "signature_delta":
            self._signature.append(piece.signature or "")
        elif piece.type == "input_json_delta" and piece.partial_json:
            if index in self._held:
                self._held[index].pieces.append(piece.partial_json)
                return
            call = self._calls.get(index)
            if call is None:
                raise BadReply(f"a stream with pieces of a call that never began (block {index})")
            self._inputs.pop(index, None)
            call.pieces.append(piece.partial_json)
            deltas.append(Delta("call", piece.partial_json))

    def _change(self, event: _Event, deltas: list[Delta]) -> None:
        """Anything but a piece of a block."""
        kind = event.type
        if event.error is not None or kind == "error":
            raise problem(event.error or Problem())
        if kind == "content_block_start":
            try:
                self._begin(event.index, read_block(bytes(event.content_block)), deltas)
            except BadInput as error:
                raise BadReply(f"a stream with a block that cannot be read: {error}") from error
        elif kind == "content_block_stop":
            self._stop(event.index, deltas)
        elif kind == "message_start" and event.message is not None:
            self._assembly.model = event.message.model or self._assembly.model
            self._start = event.message.usage or self._start
        elif kind == "message_delta":
            self._end = event.usage or self._end
            if event.delta is not None:
                self._reason = event.delta.stop_reason or self._reason

    def _begin(self, index: int, block: Block | Unknown, deltas: list[Delta]) -> None:
        self._sign()
        self._assembly.end_part()
        if isinstance(block, Unknown):
            self._stop(index, deltas)
            self._held[index] = _Held(json_object(block.data) or {})
        elif block.type == "tool_use":
            self._begin_call(index, block, deltas)
        elif block.type == "text":
            if block.text:
                self._assembly.text(block.text)
                deltas.append(Delta("text", block.text))
        elif block.type == "thinking":
            if block.thinking:
                self._assembly.thought(block.thinking)
                deltas.append(Delta("thought", block.thinking))
            if block.signature:
                self._signature.append(block.signature)
        else:
            self._assembly.add(read_part(block, self._ids))

    def _begin_call(self, index: int, block: Block, deltas: list[Delta]) -> None:
        self._stop(index, deltas)
        given_id = self._ids.take(block.id or "")
        call = self._assembly.call(given_id)
        call.id, call.name = given_id, block.name or ""
        self._calls[index] = call
        given = raw_text(block.input)
        if given not in ("", "{}", "null"):
            self._inputs[index] = given
        deltas.append(Delta("call", "", call.name))

    def _stop(self, index: int, deltas: list[Delta]) -> None:
        """The end of a block: what was held back until it was sure that nothing follows."""
        self._sign()
        self._assembly.end_part()
        held, given = self._held.pop(index, None), self._inputs.pop(index, None)
        if held is not None:
            self._assembly.add(held.part())
        call = self._calls.pop(index, None)
        if given is not None and call is not None:
            call.pieces.append(given)
            deltas.append(Delta("call", given))
        if call is not None:
            call.pieces = [unwrapped("".join(call.pieces))]

    def _sign(self) -> None:
        if self._signature:
            # joined first: a signature in many pieces would cost the square of its length
            self._assembly.sign("".join(self._signature))
            self._signature = []


def _read_carefully(data: bytes) -> _Event | None:
    """None for what may be passed over."""
    if data.strip() in (b"", b"[DONE]"):
        return None
    try:
        return read_json(data, _decoder)
    except BadInput as error:
        try:
            passed_over = read_json(data, _tag_decoder).type not in _KNOWN
        except BadInput:
            passed_over = False
        if passed_over:
            return None
        raise unreadable(data, error) from error
