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
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
BODY_SECONDS = 10.0  # before the lowest speed counts
BODY_BYTES_PER_SECOND = 16_384
CHECK_SECONDS = 2.0  # between two looks at a body or at a reader
DROPPED_BYTES = 16_000_000  # of a body whose request was answered already
READER_SECONDS = 10.0
READER_BYTES = 4_096  # that a client must read in that time, if a response waits for it


class TimedProtocol(H11Protocol):
    """An HTTP/1.1 connection that is closed when its client is too slow."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
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
            if self._dropped > DROPPED_BYTES:
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
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._cut_head)

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
        self._body_timer = self.loop.call_later(CHECK_SECONDS, self._check_body, cycle)

    def _check_body(self, cycle: object) -> None:
        if cycle is not self.cycle or self.conn.their_state is not h11.SEND_BODY:
            return
        allowed = BODY_SECONDS + self._received / BODY_BYTES_PER_SECOND
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
        self._reader_timer = self.loop.call_later(READER_SECONDS, self._check_reader, waiting)

    def _check_reader(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < READER_BYTES:
            self.transport.abort()
        else:
            self._schedule_reader_check()
