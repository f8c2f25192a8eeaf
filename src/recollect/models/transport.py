"""HTTP over httpx2: one POST at a time on a connection, its response in bounded pieces.

httpx2 brings proxies (settings or environment), certificates (`SSL_CERT_FILE`, `SSL_CERT_DIR`, else
the system's) and HTTP/2 where the server offers it. Guarantees on top of it: every failure is one
`TransportFailed` whose `why` holds no key; redirects are not followed, cookies not kept, nothing is
logged. A compressed body is refused: none was asked for, and a few bytes may become many. An error
response is read even if it arrives before the request is through. A connection serves one request
at a time, so that abandoning a response closes it at once and disturbs no other: httpcore2 never
resets a cancelled HTTP/2 stream, and the server would go on answering.
"""

from __future__ import annotations

import logging
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from recollect.models.connection_errors import describe_exception
from recollect.models.http_errors import BROKEN, COMPRESSED, MALFORMED, TransportFailed
from recollect.models.idle_connections import IdleConnections
from recollect.models.network_backend import NetworkBackend
from recollect.settings import TransportSettings

_MAX_IDLE = 4  # connections kept for the next request, to one server
_KEEP = 60.0  # seconds
_DIRECT = {"all://localhost": None, "all://127.0.0.1": None, "all://[::1]": None}
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # h2, unlike h11, would send them

# httpx2 and httpcore2 log addresses with their passwords, and headers that may repeat a key
_ours: ContextVar[bool] = ContextVar("recollect_request", default=False)
for _logger in ("connection", "http11", "http2", "proxy", "socks"):
    logging.getLogger(f"httpcore2.{_logger}").addFilter(lambda _: not _ours.get())
logging.getLogger("httpx2").addFilter(lambda _: not _ours.get())


class HttpClient:
    """Sends requests; for one event loop."""

    def __init__(self, settings: TransportSettings, shared: IdleConnections | None = None) -> None:
        self.settings = settings
        self._idle = shared or IdleConnections(_MAX_IDLE)
        self._owns_idle = shared is None
        self._busy: set[ProviderConnection] = set()
        self._closed = False

    async def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: Callable[[], Iterable[bytes]],
        size: int,
    ) -> HttpResponse:
        """The response, as soon as its headers are there; it has to be closed.

        `body` is called once more if the request has to be sent anew."""
        if self._closed:
            raise TransportFailed(BROKEN, retryable=False)
        if any(map(_CONTROL.search, (url, *headers, *headers.values()))):
            raise TransportFailed(MALFORMED, retryable=False)
        with _described(self.settings):
            fields = [(n.encode(), v.encode("latin-1")) for n, v in headers.items()]
            fields.append((b"content-length", b"%d" % size))
            connection = await self._idle.take(_server_of(url, self.settings))
            connection = connection or ProviderConnection(url, self.settings)
            try:
                return await self._send(connection, url, fields, body)
            except (httpx2.NetworkError, httpx2.ProtocolError):
                if not connection.backend.broke_off_http2:
                    raise
            # a server that answers before the request is through is understood over HTTP/1.1
            connection = ProviderConnection(url, self.settings, http2=False)
            return await self._send(connection, url, fields, body)

    async def _send(
        self,
        connection: ProviderConnection,
        url: str,
        fields: Sequence[tuple[bytes, bytes]],
        body: Callable[[], Iterable[bytes]],
    ) -> HttpResponse:
        self._busy.add(connection)
        try:
            return HttpResponse(await connection.send(url, fields, body), connection, self)
        except BaseException:
            await self.release(connection, reusable=False)
            raise

    async def release(self, connection: ProviderConnection, *, reusable: bool) -> None:
        """Keep a connection whose response was read to its end; close any other at once."""
        self._busy.discard(connection)
        if not (reusable and not self._closed and self._idle.keep(connection)):
            await connection.aclose()

    async def aclose(self) -> None:
        """Responses that are still being read break off."""
        self._closed = True
        for connection in tuple(self._busy):
            await connection.aclose()
        if self._owns_idle:
            await self._idle.aclose()


class HttpResponse:
    """Status, headers (lower case, repeated ones joined), and the body as it arrives."""

    def __init__(
        self, response: httpx2.Response, connection: ProviderConnection, client: HttpClient
    ) -> None:
        self.status, self.http_version = response.status_code, response.http_version
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self._response, self._connection, self._client = response, connection, client
        self._raw = response.aiter_raw()
        self._open = True

    async def read(self) -> bytes:
        """The next bytes of the body; none at its end."""
        encoding = self.headers.get("content-encoding", "").strip().lower()
        if encoding not in ("", "identity"):
            name = "".join(filter(str.isprintable, encoding[:40]))
            raise TransportFailed(COMPRESSED.format(name=name), retryable=False)
        with _described(self._client.settings):
            piece = await self._next()
        if not piece:
            self._open = False
            await self._client.release(self._connection, reusable=True)
        return piece

    async def read_most(self, limit: int) -> bytes:
        """The body, or as much of it as fits in the limit."""
        found = bytearray()
        while len(found) < limit and (piece := await self.read()):
            found += piece
        return bytes(found[:limit])

    async def aclose(self) -> None:
        """Close the connection at once, unless the body was read to its end."""
        if self._open:
            self._open = False
            await self._client.release(self._connection, reusable=False)
            with _unlogged(), suppress(httpx2.HTTPError):
                await self._raw.aclose()
                await self._response.aclose()

    async def _next(self) -> bytes:
        async for piece in self._raw:
            if piece:
                return piece
        return b""


class ProviderConnection:
    """An httpx2 client that holds at most one connection."""

    def __init__(self, url: str, settings: TransportSettings, *, http2: bool = True) -> None:
        wait = settings.read_timeout
        secure = url.lower().startswith("https:")
        self.server = _server_of(url, settings)
        self.backend = NetworkBackend()
        self.client = httpx2.AsyncClient(
            # loading certificates takes longer than calling a server on this machine
            verify=_authorities(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR")))
            if secure
            else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
            http2=http2 and secure,  # HTTP/2 is agreed upon in the TLS handshake
            proxy=settings.proxy or None,
            mounts=_DIRECT,
            timeout=httpx2.Timeout(wait, connect=settings.connect_timeout, pool=None),
            limits=httpx2.Limits(max_connections=1, keepalive_expiry=_KEEP),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )
        for transport in (self.client._transport, *self.client._mounts.values()):
            # httpcore2's pools take a backend of one's own, but httpx2 does not hand one on
            if (pool := getattr(transport, "_pool", None)) is not None:
                pool._network_backend = self.backend

    async def send(
        self,
        url: str,
        fields: Sequence[tuple[bytes, bytes]],
        body: Callable[[], Iterable[bytes]],
    ) -> httpx2.Response:
        content = self._pages(body())
        request = self.client.build_request("POST", url, headers=fields, content=content)
        return await self.client.send(request, stream=True)

    async def _pages(self, body: Iterable[bytes]) -> AsyncIterator[bytes]:
        self.backend.is_sending = True
        for page in body:
            yield page
        self.backend.is_sending = False

    async def aclose(self) -> None:
        with _unlogged():
            await self.backend.aclose()
            await self.client.aclose()


def _server_of(url: str, settings: TransportSettings) -> str:
    """What two requests must have in common to share a connection."""
    scheme, _, rest = url.partition("://")
    return f"{scheme.lower()}://{rest.partition('/')[0]} {settings}"


@lru_cache(maxsize=4)
def _authorities(_file: str | None, _directory: str | None) -> ssl.SSLContext:
    """For these values of the environment, which httpx2 reads itself."""
    return httpx2.create_ssl_context()


@contextmanager
def _described(settings: TransportSettings) -> Iterator[None]:
    """Around every call of httpx2: turns its exceptions into ours."""
    try:
        with _unlogged():
            yield
    except TransportFailed:
        raise
    except Exception as error:  # noqa: BLE001 - socksio, h2 and hpack raise exceptions of their own
        why, retryable = describe_exception(error, settings)
        raise TransportFailed(why, retryable=retryable) from None


@contextmanager
def _unlogged() -> Iterator[None]:
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)
