"""uvicorn's protocol with time limits, so that slow and half-open connections cannot pile up.

uvicorn waits without end for the head of a request, for its body, and for a client that reads. Here
the head must be there in time, counted from the connection or from the end of the last response; a
body must arrive at a lowest speed; and a response that its client stopped reading is cut off. The
rest of a body that was refused is read and dropped up to a bound: closing at once would reset the
connection, and the client would not see why.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol


class ConnectionLimits(msgspec.Struct, frozen=True):
    """How slow a client may be, and how much it may send."""

    connections: int = 2_000
    head_bytes: int = 32_768
    head_seconds: float = 10.0  # for the head of a request, and for the handshake of TLS
    body_seconds: float = 10.0  # before the lowest speed counts
    body_bytes_per_second: int = 16_384
    dropped_bytes: int = 16_000_000  # of a body whose request was answered already
    check_seconds: float = 2.0  # between two looks at a body
    reader_seconds: float = 10.0
    reader_bytes: int = 4_096  # that a client must read in that time, if a response waits for it
    stop_seconds: int = 5  # for what runs when the server stops


class TimedProtocol(H11Protocol):
    """An HTTP/1.1 connection that is closed when its client is too slow."""

    def __init__(self, limits: ConnectionLimits, *given: Any) -> None:
        super().__init__(*given)
        self._limits = limits
        self._head_timer: asyncio.TimerHandle | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._begun, self._received, self._dropped = 0.0, 0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._head_timer, self._body_timer, self._reader_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._received += len(data)
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
            self._dropped += len(data)
            if self._dropped > self._limits.dropped_bytes:
                self.transport.abort()
                return
        super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:  # the head of a request has come
            self._stop_waiting_for_head()
            if self.conn.their_state is h11.SEND_BODY:
                self._begun, self._received = self.loop.time(), 0
                self._schedule_body_check(self.cycle)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()

    def _await_head(self) -> None:
        self._stop_waiting_for_head()
        if not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self._limits.head_seconds, self._cut_head)

    def _stop_waiting_for_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _cut_head(self) -> None:
        """Say why where a part of a request is there; an idle connection is just closed."""
        if self.transport.is_closing():
            return
        if self._received and self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(408, "The head of the request did not arrive in time.")
        self.transport.close()

    def _refuse(self, status: int, text: str) -> None:
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            head = f"HTTP/1.1 {status} \r\nconnection: close\r\ncontent-length: {len(text)}"
            self.transport.write(f"{head}\r\ncontent-type: text/plain\r\n\r\n{text}".encode())

    # --- bodies ----------------------------------------------------------------------------------

    def _schedule_body_check(self, cycle: object) -> None:
        self._body_timer = self.loop.call_later(self._limits.check_seconds, self._check_body, cycle)

    def _check_body(self, cycle: object) -> None:
        if cycle is not self.cycle or self.conn.their_state is not h11.SEND_BODY:
            return
        allowed = self._limits.body_seconds + self._received / self._limits.body_bytes_per_second
        if self.loop.time() - self._begun <= allowed:
            self._schedule_body_check(cycle)
            return
        self._refuse(408, "The body of the request came too slowly.")
        self.transport.close()

    # --- readers ---------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._schedule_reader_check()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reader_timer is not None:
            self._reader_timer.cancel()
            self._reader_timer = None

    def _schedule_reader_check(self) -> None:
        waiting = self.transport.get_write_buffer_size()
        self._reader_timer = self.loop.call_later(
            self._limits.reader_seconds, self._check_reader, waiting
        )

    def _check_reader(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < self._limits.reader_bytes:
            self.transport.abort()
        else:
            self._schedule_reader_check()
