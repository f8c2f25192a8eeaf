"""Server-sent events: framing, heartbeats, and how many streams there are.

A comment is sent while nothing happens, so that proxies keep the connection and a client that is
gone is noticed. A stream ends when the server stops; its client connects again, here or to another
server, with the id of the last event.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.responses import StreamingResponse

from recollect.errors import ServerBusy
from recollect.server.http.problem_details import describe_error, json_bytes

HEARTBEAT = b": heartbeat\n\n"
RETRY = b"retry: 1000\n\n"


class StreamEvent(msgspec.Struct, frozen=True):
    """One event: its name, what to resume from after it, and its data."""

    name: str
    id: str
    data: object


class EventStream(StreamingResponse):
    """A response of events."""


class StreamSlots:
    """The streams that are open, of everybody and of each client."""

    def __init__(self, most: int, heartbeat_seconds: float, stopping: asyncio.Event) -> None:
        self._most, self._heartbeat, self._stopping = most, heartbeat_seconds, stopping
        self._open: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self._open.total()

    def stream(self, events: AsyncIterator[StreamEvent], client: str) -> EventStream:
        """A response that sends these events, unless there are too many streams."""
        if self.count >= self._most or self._open[client] >= max(1, self._most // 2):
            raise ServerBusy(f"{self.count} event streams are open", "close one, or try again")
        return EventStream(self._run(events, client), media_type="text/event-stream")

    async def _run(self, events: AsyncIterator[StreamEvent], client: str) -> AsyncIterator[bytes]:
        self._open[client] += 1
        try:
            yield RETRY
            async for chunk in _with_heartbeats(events, self._stopping, self._heartbeat):
                yield chunk
        finally:
            self._open[client] -= 1


async def _with_heartbeats(
    events: AsyncIterator[StreamEvent], stopping: asyncio.Event, seconds: float
) -> AsyncIterator[bytes]:
    stop = asyncio.ensure_future(stopping.wait())
    following: asyncio.Future[StreamEvent] | None = None
    try:
        while not stop.done():
            following = following or asyncio.ensure_future(anext(events))
            waiting: set[asyncio.Future[Any]] = {following, stop}
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                yield HEARTBEAT
                continue
            done, following = following, None
            try:
                yield encode_event(done.result())
            except StopAsyncIteration:
                return
            except Exception as error:  # noqa: BLE001 - too late for a status: an event says it
                yield encode_event(StreamEvent("error", "", describe_error(error)))
                return
    finally:
        for task in (stop, following):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])


def encode_event(event: StreamEvent) -> bytes:
    """An event on the wire; JSON has no line ends."""
    id_line = f"id: {event.id}\n" if event.id else ""
    return f"{id_line}event: {event.name}\ndata: ".encode() + json_bytes(event.data) + b"\n\n"
