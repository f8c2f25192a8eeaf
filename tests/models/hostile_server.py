"""Servers that mean harm: each sends without end, or far more than it seems, until it is stopped.

An attack is a function that plays one connection of `tests.models.server`; `ATTACKS` names them,
each with the wire format that it speaks. What a client must do about any of them is the same: end
with one sentence, in bounded memory.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

from recollect.profiles import WireName
from tests.models.server import HELLO, Play

ENDS = 150_000_000  # bytes after which even a hostile server gives up, so that a test can fail
_BLOCK = 262_144  # bytes that are sent at a time
_HEAD = "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Transfer-Encoding: chunked\r\n\r\n"


class Attack(NamedTuple):
    wire: WireName
    play: Play
    settings: str = ""  # further settings of the model


def endless(
    pieces: Callable[[], Iterator[bytes]],
    *,
    status: str = "200 OK",
    kind: str = "text/event-stream",
    more: str = "",
) -> Play:
    """Sends these pieces, in blocks, until the client leaves."""

    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(_HEAD.format(status=status, kind=kind, more=more).encode())
        sent, block = 0, bytearray()
        for piece in pieces():
            block += piece
            if len(block) >= _BLOCK:
                writer.write(b"%x\r\n%s\r\n" % (len(block), block))
                await writer.drain()
                sent += len(block)
                block.clear()
            if sent > ENDS:
                break
        writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(block), block) if block else b"0\r\n\r\n")
        await writer.drain()

    return play


def events(values: Callable[[], Iterator[Any]], before: tuple[Any, ...] = ()) -> Play:
    """Server-sent events with these values."""

    def pieces() -> Iterator[bytes]:
        for value in (*before,):
            yield b"data: " + json.dumps(value).encode() + b"\n\n"
        for value in values():
            yield b"data: " + json.dumps(value).encode() + b"\n\n"

    return endless(pieces)


def words(size: int) -> Iterator[str]:
    """Texts of about this size that never repeat themselves."""
    number = 1
    while True:
        found = []
        for _ in range(max(1, size // 12)):
            number = number * 6_364_136_223_846_793_005 % 18_446_744_073_709_551_557
            found.append(f"{number:x}"[:11])
        yield " ".join(found) + " "


def openai(delta: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0}]}


def anthropic(index: int, **delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def begins(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def openai_call(index: int, arguments: str, name: str | None = None) -> dict[str, Any]:
    call = {"index": index, "function": {"name": name, "arguments": arguments}}
    if name:
        call["id"] = f"c{index}"
    return openai({"tool_calls": [call]})


def repeat(text: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        while True:
            yield text

    return pieces


def opens(
    first: bytes, then: bytes, last: bytes = b"", size: int = 60_000_000
) -> Callable[[], Iterator[bytes]]:
    """One value that never ends, or ends after so many bytes."""

    def pieces() -> Iterator[bytes]:
        yield first
        for _ in range(size // len(then)):
            yield then
        if last:
            yield last

    return pieces


def bomb(encoding: str = "gzip", size: int = 800_000_000) -> Play:
    async def play(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = b"data: " + json.dumps(openai({"content": "x" * 1_000})).encode() + b"\n\n"
        packed = gzip.compress(line * (size // len(line) // 100)) * 100
        head = _HEAD.format(
            status="200 OK", kind="text/event-stream", more=f"Content-Encoding: {encoding}\r\n"
        )
        writer.write(head.encode() + b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed))
        await writer.drain()

    return play


async def endless_headers(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(ENDS // 100):
        writer.write(b"X-%d: %s\r\n" % (number, b"x" * 80))
        if number % 100 == 0:
            await writer.drain()


def _alternating() -> Iterator[Any]:
    for number in count():
        yield openai({"reasoning_content": f"t{number} "})
        yield openai({"content": f"w{number} "})


def _as(make: Callable[[Any], Any], values: Callable[[], Iterator[Any]]) -> Play:
    return events(lambda: map(make, values()))


def _values(text: bytes, size: int) -> Play:
    """One event in which a list has very many values, and then a complete reply."""
    start = b'data: {"choices":[{"index":0,"delta":{"reasoning_details":['
    return endless(opens(start, text, b"0]}}]}\n\n" + HELLO, size))


def _numbered(size: int) -> Iterator[bytes]:
    for text in words(1_000):
        yield text.encode()
        size -= len(text)
        if size < 0:
            return


def _whole(before: bytes, size: int, after: bytes, kind: str = "text/event-stream") -> Play:
    def pieces() -> Iterator[bytes]:
        yield before
        yield from _numbered(size)
        yield after

    return endless(pieces, kind=kind)


_OPENAI = b'{"choices":[{"message":{"content":"'
_STOP = b'"},"finish_reason":"stop"}]}'
_EVENT = b'data: {"choices":[{"delta":{"content":"'
_EVENT_STOP = b'"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
_WIDE = "😀".encode()
_GEMINI = b'data: {"candidates":[{"content":{"parts":[{"text":"'
_HISTORY = b'data: {"automaticFunctionCallingHistory":[{"role":"model","parts":[{"text":"'
_HISTORY_STOP = (
    b'"}]}],"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}\n\n'
)
_PARTS = b'{"text":"a"},' * 1_000
_PICTURE = "iVBORw0KGgo" + "A" * 2_999_989

_MARKS = str.maketrans("0123456789", '{"`<}[<"`{')  # what calls in text begin and end with

ATTACKS: dict[str, Attack] = {
    "text-of-marks": Attack(
        "openai",
        _as(lambda t: openai({"content": t.translate(_MARKS)}), lambda: words(1_000)),
        'tools = "text"\n',
    ),
    "text": Attack("openai", _as(lambda t: openai({"content": t}), lambda: words(1_000))),
    "text-wide": Attack(
        "openai", _as(lambda t: openai({"content": t + "😀"}), lambda: words(1_000))
    ),
    "text-tiny": Attack("openai", _as(lambda t: openai({"content": t}), lambda: words(12))),
    "text-large": Attack("openai", _as(lambda t: openai({"content": t}), lambda: words(900_000))),
    "text-gemini": Attack("gemini", _as(lambda t: gemini({"text": t}), lambda: words(1_000))),
    "text-anthropic": Attack(
        "anthropic",
        _as(lambda t: anthropic(0, type="text_delta", text=t), lambda: words(1_000)),
    ),
    "thoughts": Attack("openai", _as(lambda t: openai({"reasoning": t}), lambda: words(1_000))),
    "empty-openai": Attack("openai", _as(lambda _: openai({}), count)),
    "empty-gemini": Attack("gemini", _as(lambda _: gemini({"text": ""}), count)),
    "empty-anthropic": Attack(
        "anthropic", _as(lambda _: anthropic(0, type="text_delta", text=""), count)
    ),
    "parts-openai": Attack("openai", events(_alternating)),
    "parts-gemini": Attack(
        "gemini",
        _as(lambda n: gemini({"text": f"a{n} ", "thought": n % 2 == 0}), count),
    ),
    "parts-anthropic": Attack(
        "anthropic", _as(lambda n: begins(n, type="text", text=f"w{n} "), count)
    ),
    "signatures": Attack(
        "gemini", _as(lambda n: gemini({"text": f"a{n} ", "thoughtSignature": "c2ln"}), count)
    ),
    "calls-openai": Attack("openai", _as(lambda n: openai_call(n, "{}", "read_file"), count)),
    "calls-gemini": Attack(
        "gemini",
        _as(lambda n: gemini({"functionCall": {"name": "read_file", "args": {"n": n}}}), count),
    ),
    "calls-anthropic": Attack(
        "anthropic",
        _as(lambda n: begins(n, type="tool_use", id=f"t{n}", name="read_file", input={}), count),
    ),
    "arguments-openai": Attack(
        "openai",
        events(
            lambda: (openai_call(0, text) for text in words(1_000)),
            (openai_call(0, "", "write_file"),),
        ),
    ),
    "arguments-anthropic": Attack(
        "anthropic",
        events(
            lambda: (anthropic(0, type="input_json_delta", partial_json=t) for t in words(1_000)),
            (begins(0, type="tool_use", id="t", name="write_file", input={}),),
        ),
    ),
    "arguments-gemini": Attack(
        "gemini",
        _as(
            lambda t: gemini({"functionCall": {"name": "write_file", "args": {"content": t}}}),
            lambda: words(7_000_000),
        ),
    ),
    "pictures": Attack(
        "gemini",
        _as(lambda _: gemini({"inlineData": {"mimeType": "image/png", "data": _PICTURE}}), count),
    ),
    "unknown-blocks": Attack(
        "anthropic", _as(lambda n: begins(n, type="novelty", text="x" * 1_000), count)
    ),
    "no-newline": Attack("openai", endless(repeat(b"x" * 1_000))),
    "no-newline-data": Attack("openai", endless(opens(b"data: ", b"x" * 1_000))),
    "no-newline-gemini": Attack("gemini", endless(opens(b"data: ", b"x" * 1_000))),
    "newlines": Attack("openai", endless(repeat(b"\n" * 1_000))),
    "comments": Attack("openai", endless(repeat(b": ping\n\n"))),
    "comment-without-end": Attack("anthropic", endless(opens(b": ", b"ping" * 1_000))),
    "data-lines": Attack("openai", endless(repeat(b"data:\n" * 100))),
    "stray-lines": Attack("openai", endless(repeat(b"x\n" * 100))),
    "stray-gemini": Attack("gemini", endless(repeat(b"x\n" * 100))),
    "values": Attack("openai", _values(b"[]," * 1_000, 15_900_000)),
    "objects": Attack("openai", _values(b'{"a":1},' * 1_000, 15_900_000)),
    "event-of-parts": Attack(
        "gemini",
        endless(
            opens(b'data: {"candidates":[{"content":{"parts":[', _PARTS, b'{"text":"b"}]}}]}\n\n')
        ),
    ),
    "json": Attack(
        "openai",
        endless(
            opens(b'{"choices":[{"message":{"content":"', b"x" * 1_000), kind="application/json"
        ),
    ),
    "json-whole": Attack(
        "openai",
        endless(
            opens(
                b'{"choices":[{"message":{"content":"',
                b"abcdefghi " * 100,
                '😀"},"finish_reason":"stop"}]}'.encode(),
            ),
            kind="application/json",
        ),
    ),
    "json-parts": Attack(
        "gemini",
        endless(
            opens(
                b'{"candidates":[{"content":{"parts":[',
                _PARTS,
                b'{"text":"b"}]},"finishReason":"STOP"}]}',
            ),
            kind="application/json",
        ),
    ),
    "json-just-refused": Attack(
        "openai", _whole(_OPENAI, 15_900_000, _WIDE + _STOP, "application/json")
    ),
    "event-just-refused": Attack("gemini", _whole(_GEMINI, 15_900_000, _WIDE + b'"}]}}]}\n\n')),
    "history": Attack("gemini", _whole(_HISTORY, 15_900_000, _WIDE + _HISTORY_STOP)),
    "histories": Attack(
        "gemini",
        _as(
            lambda n: {
                **gemini({"text": f"{n} ", "thought": n % 2 == 0}),
                "automaticFunctionCallingHistory": [
                    {"role": "model", "parts": [{"text": f"b{n}"}]}
                ],
            },
            count,
        ),
    ),
    "json-calls": Attack(
        "anthropic",
        endless(
            opens(
                b'{"type":"message","content":[',
                b'{"type":"tool_use","id":"","name":"read_file","input":{}},' * 100,
                b'{"type":"text","text":"b"}],"stop_reason":"end_turn"}',
            ),
            kind="application/json",
        ),
    ),
    "page": Attack("openai", endless(repeat(b"<html>" * 1_000), kind="text/html")),
    "page-as-events": Attack("openai", endless(repeat(b"<p>never</p>" * 100))),
    "error-body": Attack(
        "openai", endless(repeat(b'{"error":' * 100), status="400 No", kind="application/json")
    ),
    "error-event": Attack(
        "openai", endless(opens(b'data: {"error":{"message":"', b"no " * 1_000, b'"}}\n\n'))
    ),
    "headers": Attack("openai", endless_headers),
    "gzip": Attack("openai", bomb()),
    "gzip-unknown": Attack("openai", bomb("br")),
    "text-tools": Attack(
        "openai",
        _as(lambda t: openai({"content": t + "😀"}), lambda: words(1_000)),
        'tools = "text"\n',
    ),
    "text-tools-call": Attack(
        "openai",
        events(
            lambda: (openai({"content": t}) for t in words(1_000)),
            (
                openai(
                    {"content": '```json\n{"tool_call": {"name": "write_file", "arguments": {"a":"'}
                ),
            ),
        ),
        'tools = "text"\n',
    ),
    "think-tags": Attack(
        "openai",
        events(
            lambda: (openai({"content": t + "😀"}) for t in words(1_000)),
            (openai({"content": "<think>"}),),
        ),
        'thinks = "text"\n',
    ),
}

# The largest replies that are accepted: these are answered, and do no harm either.

LARGE: dict[str, Attack] = {
    "history": Attack("gemini", _whole(_HISTORY, 3_900_000, _WIDE + _HISTORY_STOP)),
    "event": Attack("openai", _whole(_EVENT, 7_900_000, _EVENT_STOP)),
    "event-wide": Attack("openai", _whole(_EVENT, 3_900_000, _WIDE + _EVENT_STOP)),
    "json": Attack("openai", _whole(_OPENAI, 7_900_000, _STOP, "application/json")),
    "json-wide": Attack("openai", _whole(_OPENAI, 3_900_000, _WIDE + _STOP, "application/json")),
    "objects": Attack("openai", _values(b'{"a":1},' * 1_000, 240_000 * 8)),
    "thoughts": Attack(
        "gemini",
        _whole(
            b'data: {"candidates":[{"content":{"parts":[{"thought":true,"text":"',
            3_900_000,
            _WIDE + b'"},{"text":"done"}]},"finishReason":"STOP"}]}\n\n',
        ),
    ),
}
