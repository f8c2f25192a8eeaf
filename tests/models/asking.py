"""Questions to a server with the bare HTTP client, for the tests of it."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, TypeVar

from recollect.models.connecting import Times
from recollect.models.exchanging import Client
from recollect.models.http_request import way_to

_T = TypeVar("_T")


class Got(NamedTuple):
    status: int
    body: bytes


def client(
    trust: ssl.SSLContext | None = None,
    proxies: Mapping[str, str] | None = None,
    *,
    connect: float = 5.0,
    wait: float = 5.0,
) -> Client:
    known = trust or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ways = proxies or {}
    return Client(lambda place: way_to(place, ways), Times(connect, wait), lambda: known)


async def post(
    asked: Client,
    url: str,
    body: Sequence[bytes] = (b"{}",),
    headers: Sequence[tuple[str, str]] = (),
) -> Got:
    answer = await asked.post(url, headers, body, sum(map(len, body)))
    async with aclosing(answer.pieces()) as pieces:
        return Got(answer.status, b"".join([piece async for piece in pieces]))


def run(main: Coroutine[Any, Any, _T]) -> _T:
    """To its end; leaves no task, and nothing open that Python would warn of."""

    async def watched() -> _T:
        before = asyncio.all_tasks()
        found = await main
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == before
        return found

    found = asyncio.run(watched())
    gc.collect()
    return found


def in_a_thread(serve: Callable[[socket.socket], None], times: int) -> tuple[int, threading.Thread]:
    """A server beside our event loop, so that its reset can come while we write."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with listening:
            for _ in range(times):
                one, _ = listening.accept()
                with one:
                    serve(one)

    thread = threading.Thread(target=accept)
    thread.start()
    return listening.getsockname()[1], thread
