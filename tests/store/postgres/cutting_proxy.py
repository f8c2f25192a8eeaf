"""A TCP proxy in front of PostgreSQL that cuts a connection at a chosen moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

Moment = Literal["before it arrives", "after it was answered"]


class CuttingProxy:
    """Cuts the connection that sends `trigger`, once: before the server gets it, or when the server
    has answered, which the client never hears."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._trigger, self._moment = b"", "before it arrives"
        self.port, self.cuts = 0, 0
        self._tasks: set[asyncio.Task[None]] = set()

    def cut(self, trigger: bytes, moment: Moment) -> None:
        self._trigger, self._moment = trigger, moment

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        inward, outward = await asyncio.open_connection("127.0.0.1", self._server_port)
        answers = asyncio.create_task(_copy(inward, writer))
        try:
            while data := await reader.read(1_000_000):
                hit = bool(self._trigger) and self._trigger in data
                if hit:
                    self._trigger, self.cuts = b"", self.cuts + 1
                    answers.cancel()
                    if self._moment == "before it arrives":
                        break
                outward.write(data)
                await outward.drain()
                if hit:
                    await inward.read(1_000_000)
                    break
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            answers.cancel()
            outward.close()
            writer.transport.abort()
            self._tasks.discard(task)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1_000_000):
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def cutting_proxy(server_port: int) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(server_port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.close()
