"""A real HTTP server on loopback that answers with the bytes a test gives it.

An answer is bytes, sent as they are, or a coroutine function that gets the connection and does what
it likes with it: stall, break off, never end. Requests are recorded as they arrive.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec
import pytest

from recollect.codecs.wire_protocol import Delta, RequestOptions
from recollect.entries import Message
from recollect.errors import ModelError
from recollect.models.api_keys import ApiKey
from recollect.models.http_model import HttpModel
from recollect.models.model_protocol import ModelEvent, Retrying
from recollect.models.resolve import ResolvedModel
from recollect.profiles import Endpoint, WireName, find_profile
from recollect.settings import TransportSettings
from recollect.testing import user

KEY = "sk-fake-0123456789abcdef/+secret"
VARIABLE = "FAKE_API_KEY"
Play: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answer: TypeAlias = bytes | Play
QUICK = TransportSettings(
    connect_timeout=60.0, read_timeout=60.0, total_timeout=120.0, retries=2, longest_wait=0.01
)


@dataclass
class ReceivedRequest:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    port: int
    asked: list[ReceivedRequest] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(*answers: Answer, over: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Answers one request after the other; the last answer is repeated."""
    found = Server(0)
    running: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found.connections += 1
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            while (asked := await _request(reader)) is not None:
                answer = answers[min(len(found.asked), len(answers) - 1)]
                found.asked.append(asked)
                if isinstance(answer, bytes):
                    writer.write(answer)
                    await writer.drain()
                    if b"connection: close" in answer[:500].lower():
                        break
                else:
                    await answer(reader, writer)
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client went away, or the test is over
        finally:
            writer.close()

    async with listening(connected, running, over) as found.port:
        yield found


@asynccontextmanager
async def listening(
    connected: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    running: set[asyncio.Task[None]],
    over: ssl.SSLContext | None = None,
    port: int = 0,
) -> AsyncIterator[int]:
    """The port; those who are `running` at the end are stopped."""
    server = await asyncio.start_server(connected, "127.0.0.1", port, ssl=over)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _request(reader: asyncio.StreamReader) -> ReceivedRequest | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.strip().split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (h.partition(":") for h in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return ReceivedRequest(line, headers, body)


def http(
    body: bytes,
    status: str = "200 OK",
    kind: str = "text/event-stream",
    headers: Sequence[str] = (),
) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def plays(*pieces: bytes, end: bytes = b"", then: Play | None = None) -> Play:
    """Sends a stream piece by piece, each on its own; without an `end` it breaks off."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(STREAM_HEAD)
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(end)
        await writer.drain()
        if then is not None:
            await then(reader, writer)

    return play


END = b"0\r\n\r\n"


def event(text: str = "", finish: str | None = None) -> bytes:
    """One event of the OpenAI format."""
    delta = {"content": text} if text else {}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"model": "m-1", "choices": [choice]}) + b"\n\n"


DONE = b"data: [DONE]\n\n"
HELLO = event("hel") + event("lo") + event(finish="stop") + DONE


def chosen(
    url: str, wire: WireName = "openai", model: str = "gpt-4o", key: str = KEY
) -> ResolvedModel:
    endpoint = Endpoint(name="test", wire=wire, url=url, keys=(VARIABLE,))
    return ResolvedModel(
        name=model,
        wire_name=model,
        profile=find_profile(model),
        endpoint=endpoint,
        key=ApiKey(key, VARIABLE),
    )


async def events_of(
    model: HttpModel,
    options: RequestOptions | None = None,
    messages: Sequence[Message] = (user("hi"),),
) -> list[ModelEvent]:
    options = options or RequestOptions(model=model.name)
    return [event async for event in model.stream(messages, options)]


def call_model(
    *answers: Answer,
    transport: TransportSettings = QUICK,
    wire: WireName = "openai",
    model: str = "gpt-4o",
    options: RequestOptions | None = None,
) -> tuple[list[ModelEvent], Server]:
    """One request to a server that answers like this."""

    async def main() -> tuple[list[ModelEvent], Server]:
        async with (
            serving(*answers) as server,
            HttpModel(chosen(server.url, wire, model), transport) as called,
        ):
            return await events_of(called, options), server

    return asyncio.run(main())


def final(events: Sequence[ModelEvent]) -> Message:
    last = events[-1]
    assert isinstance(last, Message)
    assert not any(isinstance(event, Message) for event in events[:-1])
    return last


def text_of(events: Sequence[ModelEvent]) -> str:
    return "".join(e.text for e in events if isinstance(e, Delta) and e.kind == "text")


def retries(events: Sequence[ModelEvent]) -> list[Retrying]:
    return [event for event in events if isinstance(event, Retrying)]


def refused(status: str, message: str, *headers: str) -> bytes:
    body = b'{"error":{"message":"%s"}}' % message.encode()
    return http(body, status, "application/json", headers)


async def break_off(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def fails(*answers: Answer, transport: TransportSettings = QUICK) -> ModelError:
    with pytest.raises(ModelError) as caught:
        call_model(*answers, transport=transport)
    return caught.value
