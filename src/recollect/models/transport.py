"""HTTP over httpx2: one POST at a time on a connection, its response in bounded pieces.

httpx2 brings proxies (settings or environment), certificates (`SSL_CERT_FILE`, `SSL_CERT_DIR`, else
the system's) and HTTP/2 where the server offers it. Guarantees on top of it: every failure is one
`TransportFailed` whose `why` holds no key; redirects are not followed, cookies not kept, nothing is
logged. An error response is read even if it arrives before the request is through. A connection
serves one request at a time, so that abandoning a response closes it at once and disturbs no other:
httpcore2 never resets a cancelled HTTP/2 stream, and the server would go on answering.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpcore2
import httpx2

from recollect.models.reaching import host_of as display_host
from recollect.settings import Transport

MAX_PIECE = 1_000_000  # bytes that a compressed body may become at a time
_MAX_IDLE = 4  # connections kept for the next request
_KEEP = 60.0  # seconds
_BLOCKING = 16_384  # bytes that a socket always takes at once
_DIRECT = {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # h2, unlike h11, would send them
_ZLIB_OR_GZIP, _BARE_DEFLATE = 47, -15
_UNUSABLE = "the address or a header is malformed"
_UNREADABLE = "the certificates named by SSL_CERT_FILE or SSL_CERT_DIR cannot be read"
_BROKEN = "the connection broke before the reply was complete"
_DAMAGED = "the response is compressed and damaged"
_SOCKS = "SOCKS proxies need an extra package (`pip install 'recollect[socks]'`)"

_ours: ContextVar[bool] = ContextVar("recollect_request", default=False)
for _name in ("httpx2", *(f"httpcore2.{n}" for n in "connection http11 http2 proxy socks".split())):
    # their records hold addresses with passwords, and headers that may repeat a key
    logging.getLogger(_name).addFilter(lambda _: not _ours.get())


class TransportFailed(Exception):
    """No complete response. `retryable` if another attempt may get one."""

    def __init__(self, why: str, *, retryable: bool) -> None:
        super().__init__(why)
        self.why, self.retryable = why, retryable


class HttpClient:
    """Sends requests to one server; for one event loop."""

    def __init__(self, settings: Transport) -> None:
        self._settings = settings
        self._idle: list[_Connection] = []
        self._closed = False

    async def post(
        self, url: str, headers: Mapping[str, str], body: Iterable[bytes], size: int
    ) -> HttpResponse:
        """The response, as soon as its headers are there; it has to be closed."""
        if self._closed:
            raise TransportFailed(_BROKEN, retryable=False)
        if any(map(_CONTROL.search, (url, *headers, *headers.values()))):
            raise TransportFailed(_UNUSABLE, retryable=False)
        with _described(self._settings):
            connection = self._idle.pop() if self._idle else _Connection(url, self._settings)
            try:
                request = connection.client.build_request(
                    "POST",
                    url,
                    headers={n: v.encode("latin-1") for n, v in headers.items()}
                    | {"content-length": str(size).encode()},
                    content=_pages(body),
                )
                response = await connection.client.send(request, stream=True)
            except BaseException:
                await connection.aclose()
                raise
        return HttpResponse(response, connection, self)

    async def release(self, connection: _Connection) -> None:
        """Keep a connection whose response was read to its end."""
        if self._closed or len(self._idle) == _MAX_IDLE:
            await connection.aclose()
        else:
            self._idle.append(connection)

    @property
    def settings(self) -> Transport:
        return self._settings

    async def aclose(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().aclose()


class HttpResponse:
    """Status, headers (lower case, repeated ones joined), and the body as it arrives."""

    def __init__(
        self, response: httpx2.Response, connection: _Connection, client: HttpClient
    ) -> None:
        self.status, self.http_version = response.status_code, response.http_version
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response, self._connection, self._client = response, connection, client
        self._raw = response.aiter_raw()
        self._inflate: zlib._Decompress | None = None
        self._packed = b""
        self._open = True

    async def read(self) -> bytes:
        """The next bytes of the body; none at its end."""
        with _described(self._client.settings):
            piece = await self._inflated() if self._encoding else await self._next()
        if not piece:
            self._open = False
            await self._client.release(self._connection)
        return piece

    async def aclose(self) -> None:
        """Close the connection at once, unless the body was read to its end."""
        if self._open:
            self._open = False
            with _described(self._client.settings):
                await self._connection.aclose()
                with suppress(httpx2.HTTPError):
                    await self._raw.aclose()
                    await self._response.aclose()

    @property
    def _encoding(self) -> str:
        found = self.headers.get("content-encoding", "").strip().lower()
        return "" if found == "identity" else found

    async def _next(self) -> bytes:
        async for piece in self._raw:
            if piece:
                return piece
        return b""

    async def _inflated(self) -> bytes:
        """A server may compress although we ask it not to: unpack it in bounded pieces."""
        if self._encoding not in ("gzip", "x-gzip", "deflate"):
            name = "".join(filter(str.isprintable, self._encoding[:40]))
            why = f"the response is compressed in an unsupported way ({name})"
            raise TransportFailed(why, retryable=False)
        while True:
            if self._inflate is not None:
                piece = self._inflate.decompress(self._packed, MAX_PIECE)
                self._packed = self._inflate.unconsumed_tail
                if piece:
                    await asyncio.sleep(0)  # a few bytes may become many: let time limits act
                    return piece
                if self._inflate.unused_data:
                    raise zlib.error
            arrived = await self._next()
            if not arrived:
                if self._inflate is not None and not self._inflate.eof:
                    raise zlib.error
                return b""
            if self._inflate is None:  # some servers omit zlib's header, whose first byte ends in 8
                bare = self._encoding == "deflate" and arrived[0] & 15 != 8
                self._inflate = zlib.decompressobj(_BARE_DEFLATE if bare else _ZLIB_OR_GZIP)
            self._packed += arrived


async def _pages(body: Iterable[bytes]) -> AsyncIterator[bytes]:
    for page in body:
        yield page


# --- connections ---------------------------------------------------------------------------------


class _Connection:
    """An httpx2 client that holds at most one connection."""

    def __init__(self, url: str, settings: Transport) -> None:
        wait = settings.read_timeout
        secure = url.lower().startswith("https:")
        self._backend = _Backend()
        self.client = httpx2.AsyncClient(
            # loading the authorities takes longer than asking a server on this machine
            verify=_authorities(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
            if secure
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            http2=True,
            proxy=settings.proxy or None,
            mounts=_DIRECT,
            timeout=httpx2.Timeout(wait, connect=settings.connect_timeout, pool=None),
            limits=httpx2.Limits(max_connections=1, keepalive_expiry=_KEEP),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        for transport in (self.client._transport, *self.client._mounts.values()):
            # httpcore2's pools take a backend of one's own, but httpx2 does not hand one on
            if (pool := getattr(transport, "_pool", None)) is not None:
                pool._network_backend = self._backend

    async def aclose(self) -> None:
        await self._backend.aclose()
        await self.client.aclose()


class _Backend(httpcore2.AnyIOBackend):
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
        self._opened = await super().connect_tcp(
            host, port, timeout, local_address, socket_options
        )
        return _Stream(self._opened)

    async def aclose(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.aclose()


class _Stream(httpcore2.AsyncNetworkStream):
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
        for _ in range(2):  # the event loop reads what is there before our write can fail for it
            await asyncio.sleep(0)
        writing = asyncio.create_task(self._stream.write(buffer, timeout))
        try:
            await asyncio.wait((reading, writing), return_when="FIRST_COMPLETED")
            if writing.done() and writing.exception() is not None:
                await asyncio.wait((reading,), timeout=1.0)  # what came before the loss
            if reading.done():
                self._early = b"" if reading.exception() else reading.result()
                if self._early[9:10] not in (b"1", b"2"):
                    raise httpcore2.WriteError
            await writing
        finally:
            reading.cancel()
            writing.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

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
        return stream if over.selected_alpn_protocol() == "h2" else _Stream(stream)

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


@lru_cache(maxsize=4)
def _authorities(_file: str | None, _directory: str | None) -> ssl.SSLContext:
    """For these values of the environment, which httpx2 reads itself."""
    return httpx2.create_ssl_context()


# --- failures ------------------------------------------------------------------------------------


@contextmanager
def _described(settings: Transport) -> Iterator[None]:
    """Around every call of httpx2: silences its logs and turns its exceptions into ours."""
    token = _ours.set(True)
    try:
        yield
    except (asyncio.TimeoutError, TransportFailed):
        raise
    except Exception as error:  # noqa: BLE001 - socksio, h2 and hpack raise exceptions of their own
        why, retryable = _describe(error, settings)
        raise TransportFailed(why, retryable=retryable) from None
    finally:
        _ours.reset(token)


def _describe(error: Exception, settings: Transport) -> tuple[str, bool]:
    """Why it failed, and whether to try again; never with the text of an exception: it may quote
    a header."""
    match error:
        case httpx2.ConnectTimeout():
            return f"no connection within {settings.connect_timeout:g} seconds", True
        case httpx2.TimeoutException():
            return f"nothing arrived for {settings.read_timeout:g} seconds", True
        case httpx2.ConnectError():
            return _no_connection(error), False
        case httpx2.ProxyError():
            return f"the proxy {_proxy(settings)} refused", False
        case ImportError():
            return _SOCKS, False
        case OSError():
            return _UNREADABLE, False
        case zlib.error():
            return _DAMAGED, True
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            return _UNUSABLE, False
        case UnicodeError():
            return _UNUSABLE, False
        case ValueError():
            kinds = "http://, https://, socks5:// and socks5h://"
            return f"the proxy {_proxy(settings)} cannot be used: only {kinds} are supported", False
    return _BROKEN, True


def _proxy(settings: Transport) -> str:
    return display_host(settings.proxy) if settings.proxy else "of the environment"


def _no_connection(error: BaseException) -> str:
    """From the cause that the operating system gave, wherever in the chain it is."""
    chain: list[BaseException] = [error]
    for step in chain:
        found = step.exceptions if isinstance(step, BaseExceptionGroup) else ()
        causes = (*found, step.__cause__ or step.__context__)
        chain += [cause for cause in causes[:10] if cause is not None and len(chain) < 50]
        if isinstance(step, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({step.verify_message})"
        if isinstance(step, ssl.SSLError):
            return "no secure connection could be agreed on (TLS)"
        if isinstance(step, socket.gaierror):
            return "no such host is known"
        if isinstance(step, ConnectionRefusedError):
            return "nothing answers there (the connection was refused)"
    return "no connection could be made"
