"""The bytes of a reply's body, in the pieces in which they are sent.

Bodies without an end and compressed bombs are generated while they are sent: no more of them than
one block is ever held.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from recollect.entries import Usage
from recollect.profiles import WireName
from recollect.testing.reply_events import (
    DIALECTS,
    ReplyEvent,
    encode_events,
    encode_more_text,
    encode_whole,
)
from recollect.testing.wire_reply import WireReply

_BLOCK = 1 << 16  # bytes of one piece of an endless reply
_BOMB_BLOCK = 1 << 20  # bytes that one block of a bomb inflates to
_EVENT_STREAM = "text/event-stream"
_PING = ": ping"


class ReplyBody(NamedTuple):
    pieces: Iterator[bytes]
    length: int | None  # that the pieces have, or are said to have; None: not known
    content_type: str
    streamed: bool = False


class RequestFacts(NamedTuple):
    """What a reply takes from its request."""

    model: str
    usage: Usage  # for a reply that names none
    stream: bool
    key: str = ""
    as_list: bool = False  # Gemini streams a JSON list unless the address says `alt=sse`


def encode_body(format_: WireName, reply: WireReply, request: RequestFacts) -> ReplyBody:
    if reply.body is not None:
        data = reply.body.replace(b"KEY", request.key[: reply.echo_key].encode())
        return _finite([data], len(data), reply, "application/json")
    if not (request.stream if reply.stream is None else reply.stream):
        text = encode_whole(format_, reply, request.model, request.usage)
        data = text.encode("utf-8", "replace")  # half of a surrogate pair has no bytes
        sent = data[: _cut_whole(data, reply, format_)]
        return _finite([sent], len(data), reply, "application/json")
    events = encode_events(format_, reply, request.model, request.usage)
    if request.as_list:
        text = "[" + ",\r\n".join(event.data for event in events) + "]"
        return _finite([text.encode("utf-8", "replace")], 0, reply, "application/json")
    if reply.endless or reply.inflate:
        events = _without_end(events)
    found = [_frame(event, format_, reply) for event in events]
    if reply.bom and found:
        found[0] = b"\xef\xbb\xbf" + found[0]
    length = sum(map(len, found))
    kept = _cut_stream(found, events, reply.cut)
    if reply.endless or reply.inflate:
        endless = chain(kept, _endless_blocks(format_, reply))
        pieces = _compress(kept, format_, reply) if reply.gzip else endless
        return ReplyBody(pieces, None, reply.content_type or _EVENT_STREAM, streamed=True)
    return _finite(kept, length, reply, _EVENT_STREAM)


def _finite(pieces: Sequence[bytes], length: int, reply: WireReply, kind: str) -> ReplyBody:
    """`length` is that of the whole body, of which the pieces may be the beginning."""
    if reply.gzip:
        pieces = [_gzip(b"".join(pieces))]
    if reply.chunk:
        whole = b"".join(pieces)
        pieces = [whole[at : at + reply.chunk] for at in range(0, len(whole), reply.chunk)]
    sent = sum(map(len, pieces))
    claimed = sent if reply.close == "clean" else max(length, sent + 1)
    length = claimed + reply.length_error
    kind_said = reply.content_type or kind
    return ReplyBody(iter(pieces), length, kind_said, streamed=kind == _EVENT_STREAM)


def _frame(event: ReplyEvent, format_: WireName, reply: WireReply) -> bytes:
    dialect = DIALECTS[format_]
    lines = [f"data: {event.data}", ""]
    if dialect.named_events and event.data.startswith('{"type":"'):
        name = event.data.split('"', 4)[3]
        lines.insert(0, f"event: {name}")
    if reply.pings:
        lines += [_PING, ""]
    line_end = reply.line_end or dialect.line_end
    return "".join(line + line_end for line in lines).encode("utf-8", "replace")


def _cut_stream(found: list[bytes], events: Sequence[ReplyEvent], place: str) -> list[bytes]:
    """The events up to the place where the bytes stop."""
    if not place:
        return found
    if place == "character":
        for index, data in enumerate(found):
            if not data.isascii():
                return [*found[:index], data[: _inside_character(data)]]
        raise ValueError("no character of the reply has several bytes; add one, such as “é”")
    wanted = ("arguments",) if place == "arguments" else ("text", "arguments")
    places = [index for index, event in enumerate(events) if event.carries in wanted]
    if not places:
        raise ValueError(f"nothing in the reply can be cut in its {place}; add a text or a call")
    index = places[len(places) // 2] if place == "arguments" else places[-1]
    return [*found[:index], found[index][: len(found[index]) // 2]]


def _without_end(events: list[ReplyEvent]) -> list[ReplyEvent]:
    """The events up to the last text, after which more text can follow."""
    texts = [index for index, event in enumerate(events) if event.carries == "text"]
    kept = events[: texts[-1] + 1] if texts else events
    return [event for event in kept if event.carries != "end"]


def _inside_character(data: bytes) -> int:
    return next(at for at, byte in enumerate(data) if byte > 127) + 1


def _cut_whole(data: bytes, reply: WireReply, format_: WireName) -> int:
    if not reply.cut:
        return len(data)
    if reply.cut == "character" and not data.isascii():
        return _inside_character(data)
    if reply.cut == "arguments":
        fields = (field.rpartition(".")[2] for field in DIALECTS[format_].arguments)
        starts = [data.rfind(f'"{field}":'.encode()) for field in fields]
        return (max(starts) + len(data)) // 2 if max(starts) >= 0 else len(data) // 2
    return len(data) // 2


def _endless_blocks(format_: WireName, reply: WireReply) -> Iterator[bytes]:
    if reply.endless == "line":
        block = b"data: " + b"x" * _BLOCK
    elif reply.endless == "comments":
        block = b": nothing yet\n\n" * (_BLOCK // 16)
    else:
        block = _frame(ReplyEvent(encode_more_text(format_, "more text " * 6_000)), format_, reply)
    rest = block.replace(b"data: ", b"x" * 6) if reply.endless == "line" else block
    for sent in range(0, reply.most, len(block)):
        yield rest if sent else block


def _gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _compress(start: Sequence[bytes], format_: WireName, reply: WireReply) -> Iterator[bytes]:
    """A gzip bomb: one block is compressed so that it stands alone, and repeated."""
    shell = len(_frame(ReplyEvent(encode_more_text(format_, "")), format_, reply))
    text = encode_more_text(format_, "a" * (_BOMB_BLOCK - shell))
    block = _frame(ReplyEvent(text), format_, reply)
    first = b"".join(start)
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    yield packer.compress(first) + packer.flush(zlib.Z_FULL_FLUSH)
    lone = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = lone.compress(block) + lone.flush(zlib.Z_FULL_FLUSH)
    checksum, size = zlib.crc32(first), len(first)
    for _ in range(-(-reply.inflate // len(block))):
        checksum, size = zlib.crc32(block, checksum), size + len(block)
        yield packed
    yield b"\x03\x00" + checksum.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")
