"""How a request gets to a server: address, headers, the connection, and why it did not get there.

The key travels in a header, never in an address. Redirects are not followed. A proxy from the
settings or the environment is used for everything but this machine. Why a server could not be
reached is told in plain words, with the host and without credentials.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from recollect.codecs.encoder import EncodedRequest
from recollect.errors import ModelError, Unreachable
from recollect.models.api_keys import ApiKey
from recollect.models.connecting import (
    BadAddress,
    BadAuthorities,
    BadProxy,
    Damaged,
    HttpFailed,
    NoConnection,
    Place,
    ProxyRefused,
    Times,
    TooSlow,
    Way,
    place_of,
)
from recollect.models.exchanging import Client
from recollect.models.retry import FailedAttempt
from recollect.profiles import Endpoint
from recollect.settings import TransportSettings

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
_HERE = ("localhost", "127.0.0.1", "::1")
_NO_AUTHORITIES = "the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read"
_PLAIN_WORDS = {
    BadAddress: "the address or a header cannot be used",
    BadAuthorities: _NO_AUTHORITIES,
}


class Address(NamedTuple):
    """Where a request goes, and with which key."""

    url: str
    key: ApiKey | None


def build_url(endpoint: Endpoint, base: str, model: str) -> str:
    """The address of one request; a model's name cannot lead out of its place in the path."""
    return base.rstrip("/") + _PATHS[endpoint.wire].format(
        model=quote(model, safe="", errors="replace")
    )


def build_headers(
    endpoint: Endpoint, key: ApiKey | None, transport: TransportSettings
) -> dict[str, str]:
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


def find_secrets(endpoint: Endpoint, transport: TransportSettings) -> Iterator[ApiKey]:
    """What must not be told besides the key: headers that carry secrets, a proxy's password."""
    for name, value in (*endpoint.headers, *transport.headers.items()):
        if any(word in name.lower() for word in _SECRET_HEADERS):
            yield ApiKey(value)
            yield ApiKey(value.rsplit(" ", 1)[-1])
    for url in (transport.proxy, endpoint.url):
        yield from find_passwords(url)


def find_passwords(url: str) -> Iterator[ApiKey]:
    try:
        password = urlsplit(url).password
    except ValueError:
        return
    if password:
        yield ApiKey(password)
        yield ApiKey(unquote(password))


class RequestBody:
    """The bytes of a request, handed on as they were written; the same each time it is read."""

    def __init__(self, encoded: EncodedRequest) -> None:
        self._encoded = encoded
        self.size = encoded.size

    def __iter__(self) -> Iterator[bytes]:
        return self._encoded.pages()


def open_client(transport: TransportSettings) -> Client:
    # stamina warns of every retry. We tell it as an event; without a handler of its own it would
    # be printed into the person's terminal as well (`logging.lastResort`).
    logging.getLogger("stamina").addHandler(_SILENT)
    proxies = proxies_of(transport)
    times = Times(transport.connect_timeout, transport.read_timeout)
    return Client(lambda place: way_to(place, proxies), times, authorities)


def authorities() -> ssl.SSLContext:
    """Whose certificates are trusted. To be asked for when one has to be judged: reading all of
    them takes longer than asking a server on this machine."""
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        import certifi

        file = certifi.where()
    try:
        trust = ssl.create_default_context(cafile=file, capath=None if file else folder)
    except OSError:
        raise BadAuthorities from None
    trust.minimum_version = ssl.TLSVersion.TLSv1_2
    trust.set_alpn_protocols(["http/1.1"])
    return trust


def proxies_of(transport: TransportSettings) -> Mapping[str, str]:
    """By scheme, or for "all"; under "no" those hosts that are reached without one."""
    return {"all": transport.proxy} if transport.proxy else environment_proxies(os.environ)


def environment_proxies(environment: Mapping[str, str]) -> Mapping[str, str]:
    """A small name wins over one in capitals; an empty one takes the other back."""
    found = {}
    for kind in ("http", "https", "all", "no"):
        small, large = f"{kind}_proxy", f"{kind}_proxy".upper()
        # a web server puts a client's `Proxy:` header into HTTP_PROXY of the programs it runs
        forged = kind == "http" and "REQUEST_METHOD" in environment
        value = environment.get(small, "" if forged else environment.get(large, ""))
        if value.strip():
            found[kind] = value.strip()
    if not found and sys.platform in ("darwin", "win32"):
        from urllib.request import getproxies

        return getproxies()  # what the system's own settings say
    return found


def way_to(place: Place, proxies: Mapping[str, str]) -> Way:
    """Raises `BadProxy` where the proxy is none that we can speak with."""
    proxy = proxies.get(place.scheme) or proxies.get("all") or ""
    if not proxy or place.host in _HERE:
        return Way(place)
    if any(_is_meant(entry.strip(), place) for entry in proxies.get("no", "").split(",")):
        return Way(place)
    try:
        return Way(place, place_of(proxy if "://" in proxy else f"http://{proxy}"))
    except BadAddress:
        raise BadProxy from None


def _is_meant(entry: str, place: Place) -> bool:
    """Whether an entry of NO_PROXY names this place.

    `example.com` means itself and all below it, `.example.com` only those below; a scheme before it
    and a port behind it restrict it; `10.0.0.0/8` is a network.
    """
    if entry in ("", "*"):
        return entry == "*"
    scheme, _, rest = entry.lower().rpartition("://")
    if scheme not in ("", "all", place.scheme):
        return False
    if "/" in rest or rest.count(":") > 1:
        return _is_within(rest, place)
    host, _, port = rest.partition(":")
    if port and port != str(place.port):
        return False
    host = host.removeprefix("*")
    return place.host.endswith("." + host.removeprefix(".")) or place.host == host


def _is_within(network: str, place: Place) -> bool:
    from ipaddress import ip_address, ip_network

    try:
        return ip_address(place.host) in ip_network(network.strip("[]"), strict=False)
    except ValueError:  # one of them is a name
        return False


def broken(error: HttpFailed, url: str, transport: TransportSettings) -> FailedAttempt:
    """What went wrong with a connection, in plain words, and whether to try again."""
    host = display_host(url)
    if isinstance(error, TooSlow):
        connecting = f"no connection within {transport.connect_timeout:g} seconds"
        silent = f"nothing came for {transport.read_timeout:g} seconds"
        return FailedAttempt(
            Unreachable(host, connecting if error.connecting else silent), again=True
        )
    if isinstance(error, ProxyRefused | BadProxy):
        where = display_host(transport.proxy) if transport.proxy else "the proxy of the environment"
        why = f"the proxy {where} refused"
        if isinstance(error, BadProxy):
            why = f"{where} cannot be used: only http:// and https:// proxies are supported"
        return FailedAttempt(Unreachable(host, why), again=False)
    if isinstance(error, NoConnection):
        return FailedAttempt(Unreachable(host, _no_connection(error)), again=False)
    if type(error) in _PLAIN_WORDS:
        return FailedAttempt(Unreachable(host, _PLAIN_WORDS[type(error)]), again=False)
    if isinstance(error, Damaged):
        packed = "damaged" if error.known else "in a way that was not asked for"
        return FailedAttempt(
            Unreachable(host, f"the answer is compressed and {packed}"), again=error.known
        )
    return FailedAttempt(
        Unreachable(host, "the connection broke before the reply was complete"), again=True
    )


def out_of_time(url: str, transport: TransportSettings) -> ModelError:
    why = f"the reply was not complete after {transport.total_timeout:g} seconds"
    return Unreachable(display_host(url), why)


def display_host(url: str) -> str:
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


def header_map(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers in small letters, as `retrying` and `refusals` read them, twice given ones joined."""
    found: dict[str, str] = {}
    for name, value in headers:
        low = name.lower()
        found[low] = f"{found[low]}, {value}" if low in found else value
    return found
