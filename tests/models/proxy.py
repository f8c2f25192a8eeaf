"""A real proxy on loopback.

Whatever host it is asked for, it hands everything to one port of this machine, so a test can ask
for a host that does not exist. What it was told is recorded.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.models.server import listening


@dataclass
class Proxy:
    port: int = 0
    heads: list[str] = field(default_factory=list)  # all that it could read of requests


@asynccontextmanager
async def proxying(to: int, over: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """Forwards to this port; `over` is its own certificate, for an https:// proxy."""
    found, running = Proxy(), set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            found.heads.append(head.decode())
            back, forth = await asyncio.open_connection("127.0.0.1", to)
            if head.startswith(b"CONNECT "):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                forth.write(head)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(pump(reader, forth))
                    group.create_task(pump(back, writer))
            finally:
                forth.transport.abort()
        writer.transport.abort()

    async with listening(connected, running, over) as found.port:
        yield found


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


def port_of(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])
