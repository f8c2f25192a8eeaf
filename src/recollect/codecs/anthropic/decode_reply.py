"""A reply of Anthropic's API, in one piece or streamed, decoded while it arrives.

Guarantees: any chunking of the bytes gives the same message and the same deltas. Blocks of an
unknown type are kept whole, as `Unknown`; unknown events are skipped, as the API's documentation
asks. An error raises a `ProviderFailed`; bytes that are not a reply raise a `BadReply` that names
them. A whole reply that came instead of events is decoded. The cost is linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.anthropic.decode_parts import (
    ContentBlock,
    decode_block,
    decode_json,
    decode_part,
    raw_text,
)
from recollect.codecs.call_arguments import MALFORMED, unwrap_arguments
from recollect.codecs.foreign_json import JSON_ERRORS, NO_JSON, parse_object, read_count
from recollect.codecs.provider_errors import (
    bad_reply_from,
    provider_error_in,
    unreadable_reply,
)
from recollect.codecs.reply_assembly import CallIds, PartialCall, ReplyAssembly
from recollect.codecs.sse import SseParser
from recollect.codecs.wire_protocol import NO_DELTAS, Delta
from recollect.entries import Message, Part, Text, Thought, Unknown, Usage, json_text
from recollect.errors import BadInput, BadReply, ProviderFailed
from recollect.tokens import believe_usage

# The status of an error inside a stream is not sent; the API's documentation gives these.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_COUNTS = ("input", "cache_creation_input", "cache_read_input", "output")  # of tokens
_KNOWN_EVENT = re.compile("content_block_(start|delta|stop)|message_(start|delta)|error")


class _BlockDelta(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = ""
    partial_json: str | None = None
    thinking: str | None = ""
    signature: str | None = ""
    stop_reason: str | None = None


class _MessageStart(msgspec.Struct, gc=False):
    model: str | None = None
    usage: dict[str, Any] | None = None


class _AnthropicEvent(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    delta: _BlockDelta | None = None
    content_block: msgspec.Raw = NO_JSON
    message: _MessageStart | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class _AnthropicReply(msgspec.Struct, gc=False):
    type: str = ""
    content: list[msgspec.Raw] | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_decoder = msgspec.json.Decoder(_AnthropicReply)
_event_decoder = msgspec.json.Decoder(_AnthropicEvent)
_decode_event = _event_decoder.decode


def decode_reply(body: bytes) -> Message:
    try:
        reply = decode_json(body, _decoder)
        if reply.error is not None:
            raise _error_from(reply.error)
        if reply.type != "message" and reply.content is None:
            raise bad_reply_from(body)
        blocks = [decode_block(bytes(raw)) for raw in reply.content or ()]
        ids = CallIds()
        parts = [b if isinstance(b, Unknown) else decode_part(b, ids) for b in blocks]
    except BadInput as error:
        raise unreadable_reply(body, error) from error
    assembly = ReplyAssembly()
    for part in parts:
        if has_content(part):
            assembly.add(part)
    assembly.model = reply.model or ""
    assembly.usage = _merge_usage(reply.usage)
    assembly.end("anthropic", reply.stop_reason or "")
    return assembly.message()


def _error_from(error: Any) -> ProviderFailed:
    kind = error.get("type") if isinstance(error, dict) else ""
    return provider_error_in(error, _STATUS.get(str(kind)[:100], 0))


def _merge_usage(*reported: dict[str, Any] | None) -> Usage | None:
    """A stream reports totals so far: the last value of each count is right. Some servers know the
    input only at the start, or only at the end, and report zero otherwise."""
    last: dict[str, Any] = {}
    for usage in reported:
        last |= {name: count for name, count in (usage or {}).items() if count}
    details = last.get("output_tokens_details")
    thoughts = details.get("thinking_tokens") if isinstance(details, dict) else 0
    new, written, cached, output, thoughts = map(
        read_count, [*(last.get(f"{name}_tokens") for name in _COUNTS), thoughts]
    )
    if not any((new, written, cached, output, thoughts)):
        return None
    read = new + written + cached  # `input_tokens` has neither what was cached nor what is now
    told = any((usage or {}).get("cache_read_input_tokens") is not None for usage in reported)
    return believe_usage(
        Usage(
            input=read,
            output=output,
            cached=cached if told else None,
            written=written,
            thoughts=thoughts,
            total=read + output,
        )
    )


def has_content(part: Part) -> bool:
    if isinstance(part, Text):
        return part.text != ""
    return not isinstance(part, Thought) or part.text != "" or part.signature != ""


class AnthropicStreamDecoder:
    def __init__(self) -> None:
        self._events = SseParser()
        self._assembly = ReplyAssembly()
        self._feed = self._events.feed
        self._has_events = False
        self._whole: Message | None = None  # a reply in one piece came instead of events
        self._reason = ""
        self._stopped = False  # the end was announced
        self._start: dict[str, Any] | None = None
        self._end: dict[str, Any] | None = None
        self._ids = CallIds()
        self._calls: dict[int, PartialCall] = {}
        self._inputs: dict[int, str] = {}  # arguments that came with a call's beginning
        self._unknown: dict[int, tuple[str, list[str]]] = {}  # blocks, and pieces of their input
        self._signature: list[str] = []  # of the thought that is open

    def feed(self, data: bytes) -> Sequence[Delta]:
        events = self._feed(data)
        if not events:
            return NO_DELTAS
        self._read_events(events)
        return self._assembly.take_deltas()

    def close(self) -> Sequence[Delta]:
        self._read_events(self._events.close())
        for index in sorted({*self._inputs, *self._unknown}):
            self._stop(index)
        if not self._has_events:
            self._read_whole(self._events.stray)
        else:
            self._assembly.refuse_stray(self._events.stray)
        return self._assembly.take_deltas()

    def message(self) -> Message:
        if self._whole is not None:
            return self._whole
        self._sign()
        assembly = self._assembly
        # without `message_stop` the stream broke off, however complete it looks
        assembly.end("anthropic", (self._reason or "end_turn") if self._stopped else "")
        assembly.usage = _merge_usage(self._start, self._end)
        return assembly.message()

    def _read_whole(self, body: bytes) -> None:
        """Some servers answer in one piece although a stream was requested."""
        if not body.strip():
            return
        if not body.lstrip().startswith(b"{"):
            raise bad_reply_from(body)
        self._whole = decode_reply(body)
        for part in self._whole.parts:
            self._assembly.add_shown(part)

    def _read_events(self, events: Sequence[bytes]) -> None:
        self._has_events = self._has_events or bool(events)
        for event in events:
            self._read_event(event)

    def _read_event(self, data: bytes) -> None:
        try:
            event = _decode_event(data)
        except JSON_ERRORS:
            careful = _decode_carefully(data)
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
            else:
                self._add_delta(event.index, piece)
        else:
            self._apply(event)
        self._assembly.check_pieces(data, "partial_json")

    def _add_delta(self, index: int, piece: _BlockDelta) -> None:
        if piece.type == "thinking_delta":
            if piece.thinking:
                self._assembly.thought(piece.thinking)
        elif piece.type == "signature_delta":
            self._add_signature(piece.signature or "")
        elif piece.type == "input_json_delta" or piece.partial_json is not None:
            if piece.partial_json is None:
                raise BadReply("a damaged piece of a call", is_damage=True)
            if index in self._unknown:
                self._unknown[index][1].append(piece.partial_json)
                self._assembly.count(piece.partial_json, pieces=1)
                self._assembly.skip_pieces()
                return
            call = self._calls.get(index)
            if call is None:
                raise BadReply(f"a stream with pieces of a call that never began (block {index})")
            if piece.partial_json:
                self._inputs.pop(index, None)
                self._assembly.extend_call(call, piece.partial_json)

    def _apply(self, event: _AnthropicEvent) -> None:
        """Anything but a piece of a block."""
        kind = event.type
        if event.error is not None or kind == "error":
            raise _error_from(event.error)
        if kind == "content_block_start":
            try:
                self._begin(event.index, decode_block(bytes(event.content_block)))
            except BadInput as error:
                raise BadReply(f"a stream with an unreadable block: {error}") from error
        elif kind == "content_block_stop":
            self._stop(event.index)
        elif kind == "message_start" and event.message is not None:
            self._assembly.model = event.message.model or self._assembly.model
            self._start = event.message.usage or self._start
        elif kind == "message_delta":
            self._end = event.usage or self._end
            if event.delta is not None:
                self._reason = event.delta.stop_reason or self._reason
        elif kind == "message_stop":
            self._stopped = True

    def _begin(self, index: int, block: ContentBlock | Unknown) -> None:
        self._sign()
        self._assembly.end_part()
        if isinstance(block, Unknown):
            self._stop(index)
            self._unknown[index] = (block.data, [])
            self._assembly.count(block.data, pieces=1)
        elif block.type == "tool_use":
            self._begin_call(index, block)
        elif block.type == "text":
            if block.text:
                self._assembly.text(block.text)
        elif block.type == "thinking":
            if block.thinking:
                self._assembly.thought(block.thinking)
            if block.signature:
                self._add_signature(block.signature)
        else:
            self._assembly.add(decode_part(block, self._ids))

    def _begin_call(self, index: int, block: ContentBlock) -> None:
        self._stop(index)
        given_id = self._ids.assign(block.id or "")
        call = self._calls[index] = PartialCall(given_id, block.name or "")
        self._assembly.add(call)
        given = raw_text(block.input)
        if given not in ("", "{}", "null"):
            self._inputs[index] = given
        self._assembly.extend_call(call, "", call.name)

    def _stop(self, index: int) -> None:
        """The end of a block: adds what was held back until nothing could follow."""
        self._sign()
        self._assembly.end_part()
        unknown, given = self._unknown.pop(index, None), self._inputs.pop(index, None)
        if unknown is not None:
            self._assembly.add(_complete_block(unknown[0], "".join(unknown[1])))
        call = self._calls.pop(index, None)
        if given is not None and call is not None:
            self._assembly.extend_call(call, given)
        if call is not None:
            call.pieces = [unwrap_arguments("".join(call.pieces))]

    def _add_signature(self, text: str) -> None:
        self._signature.append(text)
        self._assembly.count(text, pieces=1)

    def _sign(self) -> None:
        if self._signature:
            # joined first: a signature in many pieces would cost the square of its length
            self._assembly.sign("".join(self._signature))
            self._signature = []


def _complete_block(data: str, text: str) -> Unknown:
    """A block of an unknown type with the input that came in pieces."""
    if not text:
        return Unknown(data=data)
    given = parse_object(text)
    block = parse_object(data) or {}
    return Unknown(data=json_text(block | {"input": {MALFORMED: text} if given is None else given}))


def _decode_carefully(data: bytes) -> _AnthropicEvent | None:
    """None for an event that is skipped."""
    if data.strip() in (b"", b"[DONE]"):
        return None
    try:
        return decode_json(data, _event_decoder)
    except BadInput as error:
        event = parse_object(data.decode("utf-8", "replace")) or {"type": "error"}
        # an unknown event is skipped, but never a piece of a call
        if not _KNOWN_EVENT.fullmatch(str(event.get("type"))) and b"partial_json" not in data:
            return None
        raise unreadable_reply(data, error) from error
