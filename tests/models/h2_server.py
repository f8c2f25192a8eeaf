"""A real HTTP/2 server on loopback, over TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events

from tests.models.server import HELLO, listening
from tests.models.tls import Certificate

_HEADERS = [(":status", "200"), ("content-type", "text/event-stream")]


@dataclass
class Http2Server:
    port: int = 0
    connections: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)  # a client has hung up

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


@asynccontextmanager
async def serving_http2(
    paper: Certificate, answer: bytes = HELLO, *, ends: bool = True, port: int = 0
) -> AsyncIterator[Http2Server]:
    """Gives the same answer to every request; without an end the response stays open."""
    found, running = Http2Server(), set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        found.connections += 1
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        connection = h2.connection.H2Connection(config)
        connection.initiate_connection()
        body = bytearray()
        with suppress(ConnectionError, asyncio.CancelledError):
            writer.write(connection.data_to_send())
            while data := await reader.read(65_536):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        found.headers.append({str(n): str(v) for n, v in event.headers})
                    elif isinstance(event, h2.events.DataReceived):
                        body += event.data
                        connection.acknowledge_received_data(
                            event.flow_controlled_length, event.stream_id
                        )
                    elif isinstance(event, h2.events.StreamEnded):
                        found.bodies.append(bytes(body))
                        body.clear()
                        connection.send_headers(event.stream_id, _HEADERS)
                        connection.send_data(event.stream_id, answer, end_stream=ends)
                writer.write(connection.data_to_send())
                await writer.drain()
        found.gone.set()
        writer.transport.abort()

    async with listening(connected, running, paper.http2, port) as found.port:
        yield found


async def refuse_over_http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Refuses each request as soon as its headers are there, and reads no body."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
    connection.initiate_connection()
    writer.write(connection.data_to_send())
    while data := await reader.read(65_536):
        for event in connection.receive_data(data):
            if isinstance(event, h2.events.RequestReceived):
                connection.send_headers(event.stream_id, [(":status", "413")], end_stream=True)
                connection.reset_stream(event.stream_id, h2.errors.ErrorCodes.NO_ERROR)
        writer.write(connection.data_to_send())
