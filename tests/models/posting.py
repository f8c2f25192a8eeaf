"""Requests with the bare transport, for the tests of it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeVar

import pytest

from recollect.models.http_errors import TransportFailed
from recollect.models.transport import HttpClient
from recollect.settings import TransportSettings
from tests.models.server import QUICK

_T = TypeVar("_T")
LONG = (b"x" * 100_000,) * 300  # no socket takes this at once


class Got(NamedTuple):
    status: int
    body: bytes
    http_version: str


@asynccontextmanager
async def opened(settings: TransportSettings = QUICK) -> AsyncIterator[HttpClient]:
    client = HttpClient(settings)
    try:
        yield client
    finally:
        await client.aclose()


async def post(
    client: HttpClient,
    url: str,
    body: Sequence[bytes] = (b"{}",),
    headers: Mapping[str, str] | None = None,
) -> Got:
    response = await client.post(url, headers or {}, lambda: body, sum(map(len, body)))
    found = bytearray()
    try:
        while piece := await response.read():
            found += piece
    finally:
        await response.aclose()
    return Got(response.status, bytes(found), response.http_version)


async def why_it_fails(
    url: str, settings: TransportSettings = QUICK, body: Sequence[bytes] = (b"{}",)
) -> str:
    async with opened(settings) as client:
        with pytest.raises(TransportFailed) as caught:
            await post(client, url, body)
    return caught.value.why


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """To its end; it leaves no task, and nothing open that Python would warn of."""

    async def watched() -> _T:
        before = asyncio.all_tasks()
        found = await main
        await until(lambda: asyncio.all_tasks() == before)
        return found

    found = asyncio.run(watched())
    gc.collect()
    return found


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def counting_open(certificate: Any = None) -> AsyncIterator[tuple[int, list[int]]]:
    """A server that swallows what it gets and says nothing: its port, and the connections that are
    open, which tests see end."""
    open_now: list[int] = []

    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.append(1)
        with suppress(ConnectionError):
            while await reader.read(1_000):
                await asyncio.sleep(0)
        open_now.pop()
        writer.transport.abort()

    server = await asyncio.start_server(swallow, "127.0.0.1", 0, ssl=certificate)
    async with server:
        yield int(server.sockets[0].getsockname()[1]), open_now
