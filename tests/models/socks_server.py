"""A real SOCKS5 proxy on loopback. Whatever host it is asked for, it connects to one port of this
machine, so a test can use a host that does not exist. It records what it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from tests.models.proxy import pump
from tests.models.server import listening

_GRANTED = b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00"
_NO_LOGIN, _LOGIN = b"\x00", b"\x02"


@dataclass
class SocksProxy:
    port: int = 0
    hosts: list[str] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)


@asynccontextmanager
async def socks_proxying(to: int) -> AsyncIterator[SocksProxy]:
    found, running = SocksProxy(), set[asyncio.Task[None]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            methods = await reader.readexactly((await reader.readexactly(2))[1])
            writer.write(b"\x05" + (_LOGIN if _LOGIN in methods else _NO_LOGIN))
            if _LOGIN in methods:
                await reader.readexactly(1)
                found.logins.append((await _text(reader), await _text(reader)))
                writer.write(b"\x01\x00")
            await reader.readexactly(4)  # a name follows, not an address
            found.hosts.append(await _text(reader))
            await reader.readexactly(2)
            back, forth = await asyncio.open_connection("127.0.0.1", to)
            writer.write(_GRANTED)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(pump(reader, forth))
                    group.create_task(pump(back, writer))
            finally:
                forth.transport.abort()
        writer.transport.abort()

    async with listening(connected, running) as found.port:
        yield found


async def _text(reader: asyncio.StreamReader) -> str:
    return (await reader.readexactly((await reader.readexactly(1))[0])).decode()
