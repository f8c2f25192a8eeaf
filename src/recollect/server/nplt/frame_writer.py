"""The frames that go to one client: counted, joined to few writes, never more than it reads.

`send` never waits. `flush` waits while too much waits for the client, and raises `SlowReader` if
that does not change in time. Frames that are sent in one step of the event loop leave together.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from recollect.errors import RecollectError
from recollect.server.nplt.frames import MAX_PAYLOAD, encode_frame, split_text
from recollect.server.nplt.message_types import HEARTBEAT_TEXT, MessageType
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.text import clip

_encoder = msgspec.json.Encoder()
CLOSE_SECONDS = 2.0  # for what still waits when a connection is closed


class SlowReader(RecollectError):
    """A client did not read what was sent to it."""

    def __init__(self, waiting: int, seconds: float) -> None:
        super().__init__(f"{waiting:,} bytes were not read for {seconds:g} s; connect again")


class FrameWriter:
    def __init__(self, writer: asyncio.StreamWriter, limits: NpltLimits) -> None:
        self._writer, self._limits = writer, limits
        self._sequence, self._joined = 0, bytearray()
        self._loop = asyncio.get_running_loop()
        writer.transport.set_write_buffer_limits(high=limits.write_buffer)
        # the kernel would hold megabytes for a client that does not read
        opened: socket.socket | None = writer.get_extra_info("socket")
        if opened is not None:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, limits.write_buffer)

    def send(self, type_: int, payload: bytes = b"") -> None:
        if not self._joined:
            self._loop.call_soon(self._write)
        self._joined += encode_frame(type_, self._sequence, payload)
        self._sequence += 1

    def send_json(self, type_: int, value: Mapping[str, object]) -> None:
        self.send(type_, encode_json(value))

    def send_text(self, text: str) -> None:
        """One CHAT_TEXT, which is never empty and never a heartbeat; a longer text is cut."""
        data = text.encode("utf-8", "replace")
        if len(data) > MAX_PAYLOAD:
            data = next(split_text(clip(text, MAX_PAYLOAD // 4)))
        self.send(MessageType.CHAT_TEXT, b" HEARTBEAT" if data == HEARTBEAT_TEXT else data or b" ")

    def _write(self) -> None:
        if self._joined and not self._writer.transport.is_closing():
            self._writer.write(bytes(self._joined))
        self._joined.clear()

    async def flush(self) -> None:
        """Go on when the client has read enough; at once while little waits for it."""
        if self._writer.transport.is_closing():
            raise ConnectionResetError
        waiting = self._writer.transport.get_write_buffer_size() + len(self._joined)
        if waiting < self._limits.write_buffer:
            return
        self._write()
        try:
            async with asyncio.timeout(self._limits.write_seconds):
                await self._writer.drain()
        except TimeoutError:
            waiting = self._writer.transport.get_write_buffer_size()
            raise SlowReader(waiting, self._limits.write_seconds) from None

    async def close(self) -> None:
        """Send what waits, as far as the client reads it, and close the connection."""
        self._write()
        writer = self._writer
        try:
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    writer.close()  # it sends what waits before it closes
                    await writer.wait_closed()
        finally:
            writer.transport.abort()


def encode_json(value: object) -> bytes:
    """JSON that is always UTF-8: lone surrogates are replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(_replace_surrogates(value))


def _replace_surrogates(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {str(_replace_surrogates(k)): _replace_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_surrogates(item) for item in value]
    return value
