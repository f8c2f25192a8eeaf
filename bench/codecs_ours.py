"""The codecs: requests written whole and one message at a time, replies read as they arrive.

Everything is built before the clock starts. What was measured is checked in the same process: a
request written piece by piece is the one that is written at once, and a reply that came in small
pieces says what it was made of. Otherwise the measurement fails.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

from bench import clock, conversation, streams
from recollect.codecs.encoder import EncodedRequest, Encoder, encode
from recollect.codecs.wire_protocol import Declaration, Decoder, RequestOptions, Wire
from recollect.entries import Entry, Message, Text, ToolCall
from recollect.view.view import View

MODELS = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
_JOINS = 50
_BETWEEN = 20_000  # milliseconds from one message to the next


def wire_of(name: str) -> Wire:
    model = MODELS[name]
    if name == "openai":
        from recollect.codecs.openai import OpenAIWire

        return OpenAIWire(model=model)
    if name == "anthropic":
        from recollect.codecs.anthropic import AnthropicWire

        return AnthropicWire(model=model)
    from recollect.codecs.gemini import GeminiWire

    return GeminiWire(model=model)


def _entries(n: int) -> list[Entry]:
    return [
        Entry(f"{i:032x}", f"{i - 1:032x}" if i else None, i * _BETWEEN, body)
        for i, body in enumerate(conversation.messages(n))
    ]


# --- requests ------------------------------------------------------------------------------------


async def whole(_: Path, n: int, wire: str, joined: bool, repeats: int = 5) -> dict[str, Any]:
    """From a folded view to the request, with nothing remembered."""
    view, codec, prompt = View.fold(_entries(n)), wire_of(wire), RequestOptions(model=MODELS[wire])

    async def work() -> int:
        found = encode(codec, view, prompt)
        return len(found.body) if joined else found.size

    found = await clock.repeat(work, repeats)
    body = json.loads(encode(codec, view, prompt).body)
    written = body["contents" if wire == "gemini" else "messages"]
    assert len(written) == n, f"{len(written)} of {n} messages were written"
    return found


async def following(_: Path, sizes: tuple[int, int], wire: str, requests: int) -> dict[str, Any]:
    """One more message and the request after it, in a short and a long session in turn. The short
    one begins anew when it has doubled."""
    few, many = sizes
    entries, prompt = _entries(many + requests), RequestOptions(model=MODELS[wire])
    took: dict[str, list[float]] = {"short": [], "long": []}
    long, long_encoder = _begun(entries[:many], wire, prompt)
    short, short_encoder = _begun(entries[:few], wire, prompt)
    clock.settle()
    for number in range(requests):
        if number % few == 0:
            short, short_encoder = _begun(entries[:few], wire, prompt)
        short = short.append(entries[few + number % few])
        took["short"].append(_next(short_encoder, short, prompt))
        long = long.append(entries[many + number])
        took["long"].append(_next(long_encoder, long, prompt))
    found = {name: statistics.median(one) for name, one in took.items()}
    body, joining = _joined(long_encoder.encode(long, prompt))
    assert body == encode(wire_of(wire), long, prompt).body, "encoding all gives something else"
    found |= {"long_joined": found["long"] + joining, "bytes": len(body)}
    return found | {"long_p99": statistics.quantiles(took["long"], n=100)[-1]}


def _begun(entries: list[Entry], wire: str, prompt: RequestOptions) -> tuple[View, Encoder]:
    view, encoder = View.fold(entries), Encoder(wire_of(wire))
    assert encoder.encode(view, prompt).size, "nothing was written"
    return view, encoder


def _next(encoder: Encoder, view: View, prompt: RequestOptions) -> float:
    began = time.perf_counter()
    encoder.encode(view, prompt)
    return time.perf_counter() - began


def _joined(request: EncodedRequest) -> tuple[bytes, float]:
    """Apart from the requests: megabytes that are copied would drive the other session's memory
    out of the caches. The body before stays alive, so that each gets new memory as in use."""
    took, body = list[float](), b""
    for _ in range(_JOINS):
        began = time.perf_counter()
        body = request.body
        took.append(time.perf_counter() - began)
    return body, statistics.median(took)


# --- replies -------------------------------------------------------------------------------------


async def streamed(_: Path, size: int, piece: int, repeats: int = 5) -> dict[str, Any]:
    """A reply in the OpenAI format through its codec, deltas and all, to the finished message."""
    stream = streams.openai_stream(size)
    pieces = streams.cut(stream.data, piece)
    wire = wire_of("openai")

    async def work() -> int:
        return _read(wire.stream_decoder(), pieces)[1]

    found = await clock.repeat(work, repeats)
    message = _read(wire.stream_decoder(), pieces)[0]
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    calls = [part.arguments for part in message.parts if isinstance(part, ToolCall)]
    assert texts == [stream.text], "the text is not what was sent"
    assert calls == [stream.arguments], "the call is not what was sent"
    assert message.finish == "calls", message.finish
    return found | {"bytes": len(stream.data)}


def _read(decoder: Decoder, pieces: list[bytes]) -> tuple[Message, int]:
    feed, count = decoder.feed, 0
    for piece in pieces:
        deltas = feed(piece)
        if deltas:
            count += len(deltas)
    count += len(decoder.close())
    return decoder.message(), count


async def scanned(_: Path, size: int, piece: int, repeats: int = 5) -> dict[str, Any]:
    """What a model without native calls says, through the scanner that finds the calls in it."""
    from recollect.codecs.text_tools.argument_coercion import DeclaredTools
    from recollect.codecs.text_tools.call_scanner import CallScanner

    text, calls = streams.tool_text(size)
    pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
    tools = DeclaredTools((Declaration(name="write_file"),))

    async def work() -> int:
        scanner = CallScanner(tools)
        # nothing is kept: a list of a million deltas would time the garbage collector
        fed = sum(delta.kind == "call" for piece in pieces for delta in scanner.feed(piece))
        return fed + sum(delta.kind == "call" for delta in scanner.close())

    found = await clock.repeat(work, repeats)
    assert found["count"] == calls, f"{found['count']} of {calls} calls were found"
    return found | {"bytes": len(text.encode())}
