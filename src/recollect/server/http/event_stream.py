"""Server-sent events: framing, heartbeats, and how many streams there are.

A comment is sent while nothing happens, so that proxies keep the connection and a client that is
gone is noticed. A stream ends with its token, and when the server stops: its client connects again,
here or to another server, with the id of the last event.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from recollect.errors import AccessDenied, ServerBusy
from recollect.server.access import LOST_ACCESS, AccessCheck
from recollect.server.http.problem_details import describe_error, json_bytes

HEARTBEAT = b": heartbeat\n\n"
RETRY = b"retry: 1000\n\n"


class StreamEvent(msgspec.Struct, frozen=True):
    """One event: its name, what to resume from after it, and its data."""

    name: str
    id: str
    data: object


class StreamSlots:
    """The streams that are open, of everybody and of each client."""

    def __init__(self, most: int, heartbeat_seconds: float, stopping: asyncio.Event) -> None:
        self._most, self.heartbeat_seconds, self.stopping = most, heartbeat_seconds, stopping
        self._open: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self._open.total()

    def stream(
        self, events: AsyncGenerator[StreamEvent, None], client: str, access: AccessCheck
    ) -> EventStream:
        """A response that sends these events, unless there are too many streams."""
        if self.count >= self._most or self._open[client] >= max(1, self._most // 2):
            raise ServerBusy(f"{self.count} event streams are open", "close one, or try again")
        return EventStream(self, events, client, access)

    @contextmanager
    def taken(self, client: str) -> Iterator[None]:
        self._open[client] += 1
        try:
            yield
        finally:
            self._open[client] -= 1


class EventStream(Response):
    """A response of events; it ends with them, with the client, or with the server."""

    media_type = "text/event-stream"

    def __init__(
        self,
        slots: StreamSlots,
        events: AsyncGenerator[StreamEvent, None],
        client: str,
        access: AccessCheck,
    ) -> None:
        self.status_code, self.background = 200, None
        self._slots, self._events, self._client, self._access = slots, events, client, access
        self.init_headers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        with self._slots.taken(self._client):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            lost = asyncio.ensure_future(self._access.until_lost())
            ends: set[asyncio.Future[Any]] = {
                asyncio.ensure_future(self._slots.stopping.wait()),
                asyncio.ensure_future(_disconnected(receive)),
                lost,
            }
            try:
                await _send(send, RETRY)
                await self._pump(send, ends)
                if lost.done():
                    gone = AccessDenied(LOST_ACCESS, "connect with another")
                    await _send(send, encode_event(StreamEvent("error", "", describe_error(gone))))
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                await _cancel(ends)
                await self._events.aclose()

    async def _pump(self, send: Send, ends: set[asyncio.Future[Any]]) -> None:
        following = asyncio.ensure_future(anext(self._events))
        try:
            while not any(end.done() for end in ends):
                await asyncio.wait(
                    {following, *ends},
                    timeout=self._slots.heartbeat_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if following.done():
                    await _send(send, encode_event(following.result()))
                    following = asyncio.ensure_future(anext(self._events))
                else:
                    await _send(send, HEARTBEAT)
        except StopAsyncIteration:
            return
        except Exception as error:  # noqa: BLE001 - too late for a status: an event says it
            await _send(send, encode_event(StreamEvent("error", "", describe_error(error))))
        finally:
            await _cancel({following})


async def _send(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _cancel(tasks: set[asyncio.Future[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def encode_event(event: StreamEvent) -> bytes:
    """An event on the wire; JSON has no line ends."""
    id_line = f"id: {event.id}\n" if event.id else ""
    return f"{id_line}event: {event.name}\ndata: ".encode() + json_bytes(event.data) + b"\n\n"
