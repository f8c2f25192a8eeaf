"""The frames of one client, within its limits of time and rate.

A frame that has begun must end in time, however slowly its bytes come. Somebody who speaks HTTP or
TLS to this port is hung up on at the first byte that shows it: a browser must not be able to say
anything to a server that wants no token.
"""

from __future__ import annotations

import asyncio
import time

from recollect.errors import RecollectError
from recollect.server.allowance import Allowance
from recollect.server.nplt.frames import Frame, FrameParser
from recollect.server.nplt.nplt_limits import NpltLimits

CHUNK = 65_536
MAX_PAUSE = 5.0  # seconds
_CAPITALS = range(0x41, 0x5B)  # every HTTP method begins with one, and no message type
_TLS = b"\x16\x03"  # a handshake; as a frame it would be the 768th of a client, or a later one


class ConnectionEnded(RecollectError):
    """The connection is over; the text, if there is one, is for the client."""


class FrameReader:
    def __init__(self, reader: asyncio.StreamReader, limits: NpltLimits, too_slow: str) -> None:
        """`too_slow`: what a client is told whose frame takes too many `seconds`."""
        self._reader, self._limits, self._too_slow = reader, limits, too_slow
        self._parser, self._deadline = FrameParser(), 0.0
        self._frame_rate = Allowance(limits.frames_per_second, limits.frame_burst)
        self._byte_rate = Allowance(limits.bytes_per_second, limits.byte_burst)
        self._pause = 0.0
        self.frames = 0  # that have come
        self.ended = asyncio.Event()

    async def read(self, patience: float) -> list[Frame] | None:
        """The next frames, at least one; None at the end. `TimeoutError` if nothing comes for
        `patience` seconds, `ConnectionEnded` if a frame is not complete in time."""
        while True:
            data = await self._read_some(patience)
            if not data:
                return None
            if self.frames == 0 and self._parser.pending == 0:
                _refuse_other_protocols(data)
            was_empty, was_in_payload = not self._parser.pending, self._parser.in_payload
            frames = self._parser.feed(data)
            self._set_deadline(is_new=bool(frames) or was_empty, was_in_payload=was_in_payload)
            self._pause = self._byte_rate.use(len(data))
            if frames:
                self.frames += len(frames)
                return frames

    def pause(self) -> float:
        """Seconds to wait before the next frame is taken, for a client that sends too fast."""
        pause = max(self._frame_rate.use(1), self._pause)
        self._pause = 0.0
        return min(pause, MAX_PAUSE)

    def end(self, why: str) -> None:
        """Another part of the connection has found that it is over."""
        self.ended.set()
        self._reader.set_exception(ConnectionEnded(why))

    async def _read_some(self, patience: float) -> bytes:
        if not self._parser.pending:
            async with asyncio.timeout(patience):
                return await self._reader.read(CHUNK)
        try:
            async with asyncio.timeout(self._deadline - time.monotonic()):
                return await self._reader.read(CHUNK)
        except TimeoutError:
            limits = self._limits
            in_payload = self._parser.in_payload
            seconds = limits.payload_seconds if in_payload else limits.header_seconds
            raise ConnectionEnded(self._too_slow.format(seconds=seconds)) from None

    def _set_deadline(self, *, is_new: bool, was_in_payload: bool) -> None:
        """For the frame that is incomplete now; `is_new` if it began with the last bytes."""
        if self._parser.in_payload and (is_new or not was_in_payload):
            self._deadline = time.monotonic() + self._limits.payload_seconds
        elif is_new:
            self._deadline = time.monotonic() + self._limits.header_seconds


def _refuse_other_protocols(data: bytes) -> None:
    if data[0] in _CAPITALS or data.startswith(_TLS):
        raise ConnectionEnded("")
