"""The sockets below httpx2, with what httpcore2 leaves out.

A response may arrive before the request is through, as a rule a refusal. httpcore2 sends a request
over HTTP/1.1 to its end before it reads, and over HTTP/2 it waits for a permission to send on that
never comes. It also forgets a socket whose TLS handshake was cancelled.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable

import httpcore2

_BLOCKING = 16_384  # bytes; shorter writes never wait for the server
_PIECE = 65_536
# of an HTTP/2 frame (RFC 9113, section 4.1)
_FRAME_HEADER = 9
_DATA, _HEADERS, _RST_STREAM = 0, 1, 3
_END_STREAM = 1


class NetworkBackend(httpcore2.AnyIOBackend):
    """Opens one socket at a time."""

    def __init__(self) -> None:
        self.is_sending = False  # set by the client: the request is not yet through
        self.is_http2 = False
        self._opened: httpcore2.AsyncNetworkStream | None = None

    @property
    def broke_off_http2(self) -> bool:
        """After a failure: it happened over HTTP/2, before the request was through."""
        return self.is_http2 and self.is_sending

    @property
    def is_stale(self) -> bool:
        """Whether something came while no request was under way: as a rule, the server hung up."""
        return self._opened is not None and bool(self._opened.get_extra_info("is_readable"))

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        await self.aclose()
        self._opened = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _Http1Stream(self._opened, self)

    async def aclose(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


class _Http1Stream(httpcore2.AsyncNetworkStream):
    """Listens while it sends."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, backend: NetworkBackend) -> None:
        self._stream, self._backend = stream, backend
        self._early = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        early, self._early = self._early[:max_bytes], self._early[max_bytes:]
        return early or await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Raises `WriteError`, upon which httpcore2 reads, if a response makes the rest useless."""
        if len(buffer) <= _BLOCKING or self._early:
            return await self._stream.write(buffer, timeout)
        reading = asyncio.create_task(self._stream.read(_PIECE))
        writing = asyncio.create_task(self._write_next(buffer, timeout))
        try:
            await asyncio.wait((reading, writing), return_when="FIRST_COMPLETED")
            if writing.done() and isinstance(writing.exception(), httpcore2.WriteError):
                await asyncio.wait((reading,), timeout=1.0)  # what came before the loss
            if reading.done():
                self._early = b"" if reading.exception() else reading.result()
                if self._early[9:10] not in (b"1", b"2"):  # of "HTTP/1.1 413": no success
                    raise httpcore2.WriteError
            await writing
        finally:
            reading.cancel()
            writing.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

    async def _write_next(self, buffer: bytes, timeout: float | None) -> None:
        for _ in range(2):  # the event loop reads what is there before a write can fail for it
            await asyncio.sleep(0)
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        over = stream.get_extra_info("ssl_object")
        self._backend.is_http2 = over.selected_alpn_protocol() == "h2"
        kind = _Http2Stream if self._backend.is_http2 else _Http1Stream
        return kind(stream, self._backend)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class _Http2Stream(_Http1Stream):
    """Breaks off as soon as the server ends a stream whose request is not yet through."""

    _frames = b""  # that have not been looked at

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._stream.read(max_bytes, timeout)
        if self._ends_stream(data) and self._backend.is_sending:
            raise httpcore2.ReadError
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    def _ends_stream(self, data: bytes) -> bool:
        found, frames = False, self._frames + data
        while len(frames) >= (size := _FRAME_HEADER + int.from_bytes(frames[:3], "big")):
            kind, flags = frames[3], frames[4]
            ends = kind in (_DATA, _HEADERS) and bool(flags & _END_STREAM)
            found = found or ends or kind == _RST_STREAM
            frames = frames[size:]
        self._frames = frames
        return found
