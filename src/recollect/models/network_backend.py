"""The sockets below httpx2, with the two things that httpcore2 leaves out.

It reads only after it has sent everything: a server that refuses a long request early would be
heard late or, once it hangs up, never. And it forgets a socket whose TLS handshake was cancelled.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable

import httpcore2

_BLOCKING = 16_384  # bytes; shorter writes never wait for the server


class NetworkBackend(httpcore2.AnyIOBackend):
    """Opens sockets, and closes them also where httpcore2 forgets them: a cancelled handshake."""

    def __init__(self) -> None:
        self._opened: httpcore2.AsyncNetworkStream | None = None

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
        return _ListeningStream(self._opened)

    async def aclose(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


class _ListeningStream(httpcore2.AsyncNetworkStream):
    """Listens while it sends: httpcore2 reads only after it has sent everything."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._early = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        early, self._early = self._early[:max_bytes], self._early[max_bytes:]
        return early or await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Raises `WriteError`, upon which httpcore2 reads, if a response makes the rest useless."""
        if len(buffer) <= _BLOCKING or self._early:
            return await self._stream.write(buffer, timeout)
        reading = asyncio.create_task(self._stream.read(65_536))
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
        # HTTP/2 reads while it writes by itself
        return stream if over.selected_alpn_protocol() == "h2" else _ListeningStream(stream)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)
