"""How a request gets to a server: address, headers, the connection, and why it did not get there.

The key travels in a header, never in an address. Redirects are not followed. A proxy from the
settings or the environment is used for everything but this machine. Why a server could not be
reached is told in plain words, with the host and without credentials.
"""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from recollect.codecs.encoding import Encoded
from recollect.errors import ModelError, Unreachable
from recollect.models.keys import Key
from recollect.models.retrying import Failed
from recollect.profiles import Endpoint
from recollect.settings import Transport

if TYPE_CHECKING:
    import httpx

_PATHS = {
    "openai": "/chat/completions",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/{model}:streamGenerateContent?alt=sse",
}
_KEY_HEADERS = {
    "openai": ("Authorization", "Bearer "),
    "anthropic": ("x-api-key", ""),
    "gemini": ("x-goog-api-key", ""),
}
_SECRET_HEADERS = ("auth", "key", "token", "cookie", "secret")
_SILENT = logging.NullHandler()
_HERE = ("localhost", "127.0.0.1", "[::1]")


class Address(NamedTuple):
    """Where a request goes, and with which key."""

    url: str
    key: Key | None


def url_for(endpoint: Endpoint, base: str, model: str) -> str:
    """The address of one request; a model's name cannot lead out of its place in the path."""
    return base.rstrip("/") + _PATHS[endpoint.wire].format(
        model=quote(model, safe="", errors="replace")
    )


def headers_for(endpoint: Endpoint, key: Key | None, transport: Transport) -> dict[str, str]:
    """The later ones win: ours, the endpoint's, the settings'. Names are compared in small."""
    found = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",  # pieces come when they are written, and nothing swells
        "user-agent": "recollect",
    }
    if key is not None:
        name, before = _KEY_HEADERS[endpoint.wire]
        found[name.lower()] = before + key.reveal()
    for name, value in (*endpoint.headers, *transport.headers.items()):
        found[name.lower()] = value
    return found


def secrets_of(endpoint: Endpoint, transport: Transport) -> Iterator[Key]:
    """What must not be told besides the key: headers that carry secrets, a proxy's password."""
    for name, value in (*endpoint.headers, *transport.headers.items()):
        if any(word in name.lower() for word in _SECRET_HEADERS):
            yield Key(value)
            yield Key(value.rsplit(" ", 1)[-1])
    password = urlsplit(transport.proxy).password
    if password:
        yield Key(password)
        yield Key(unquote(password))


class Body:
    """The bytes of a request, handed on as they were written; the same each time it is read."""

    def __init__(self, encoded: Encoded) -> None:
        self._encoded = encoded
        self.size = encoded.size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for page in self._encoded.pages():
            yield page


def open_client(transport: Transport, url: str) -> httpx.AsyncClient:
    """For one endpoint, whose address is `url`."""
    import httpx

    # stamina warns of every retry. We tell it as an event; without a handler of its own it would
    # be printed into the person's terminal as well (`logging.lastResort`).
    logging.getLogger("stamina").addHandler(_SILENT)
    direct: dict[str, httpx.AsyncBaseTransport | None] = {f"all://{host}": None for host in _HERE}
    return httpx.AsyncClient(
        timeout=httpx.Timeout(
            connect=transport.connect_timeout,
            read=transport.read_timeout,
            write=transport.read_timeout,
            pool=None,
        ),
        proxy=transport.proxy or None,
        mounts=direct,
        follow_redirects=False,
        verify=trust_for(transport, url),
    )


def trust_for(transport: Transport, url: str) -> ssl.SSLContext:
    """Whose certificates are trusted on the way to an address.

    Reading all authorities takes longer than asking a server on this machine. Without any, where no
    certificate will have to be judged, a connection that has to be secure is refused.
    """
    import httpx

    if _is_plain(transport, url):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.create_ssl_context()


def _is_plain(transport: Transport, url: str) -> bool:
    """Whether no certificate will have to be judged, neither the endpoint's nor a proxy's."""
    from urllib.request import getproxies

    return url[:7].lower() == "http://" and not transport.proxy and not getproxies()


def broken(error: Exception, url: str, transport: Transport) -> Failed:
    """What an exception of httpx means for the person, and whether to try again."""
    import httpx

    host = host_of(url)
    if isinstance(error, httpx.ConnectTimeout):
        why = f"no connection within {transport.connect_timeout:g} seconds"
        return Failed(Unreachable(host, why), again=True)
    if isinstance(error, httpx.TimeoutException):
        why = f"nothing came for {transport.read_timeout:g} seconds"
        return Failed(Unreachable(host, why), again=True)
    if isinstance(error, httpx.ProxyError):
        where = host_of(transport.proxy) if transport.proxy else "the proxy of the environment"
        return Failed(Unreachable(host, f"the proxy {where} refused"), again=False)
    if isinstance(error, httpx.ConnectError):
        return Failed(Unreachable(host, _no_connection(error)), again=False)
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return Failed(Unreachable(host, "the address or a header cannot be used"), again=False)
    if isinstance(error, httpx.DecodingError):
        return Failed(Unreachable(host, "the answer is compressed and damaged"), again=True)
    return Failed(
        Unreachable(host, "the connection broke before the reply was complete"), again=True
    )


def out_of_time(url: str, transport: Transport) -> ModelError:
    why = f"the reply was not complete after {transport.total_timeout:g} seconds"
    return Unreachable(host_of(url), why)


def host_of(url: str) -> str:
    """Host and port, without a user's name and password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "nowhere", parts.port
    except ValueError:
        return "an address that is none"
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" if port else shown


def _no_connection(error: BaseException) -> str:
    """From the cause that the operating system gave, wherever in the chain it is."""
    chain: list[BaseException] = []
    step: BaseException | None = error
    while step is not None and len(chain) < 10:
        chain.append(step)
        step = step.__cause__ or step.__context__
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return "no secure connection could be agreed on (TLS)"
        if isinstance(cause, socket.gaierror):
            return "no such host is known"
        if isinstance(cause, ConnectionRefusedError):
            return "nothing answers there (the connection was refused)"
    return "no connection could be made"


def header_map(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers in small letters, as `retrying` and `refusals` read them."""
    return {name.lower(): value for name, value in headers.items()}
