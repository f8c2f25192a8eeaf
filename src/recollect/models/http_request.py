"""What a request to an endpoint consists of: its address, its headers, and the secrets in them.

The key travels in a header, never in an address. A host is shown without a login.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies

from recollect.codecs.wires import WIRES
from recollect.models.api_keys import ApiKey
from recollect.profiles import Endpoint
from recollect.settings import TransportSettings

_SECRET_HEADERS = ("auth", "key", "token", "cookie", "secret")


def build_url(endpoint: Endpoint, base: str, model: str) -> str:
    """The address of one request; a model's name cannot lead out of its place in the path."""
    return base.rstrip("/") + WIRES[endpoint.wire].path.format(
        model=quote(model, safe="", errors="replace")
    )


def build_headers(
    endpoint: Endpoint, key: ApiKey | None, transport: TransportSettings
) -> dict[str, str]:
    """Ours, then the endpoint's, then the settings'; the last one wins. Names are in lower case."""
    found = {
        "content-type": "application/json",
        "accept": "text/event-stream",
        # pieces arrive when they are written, and none is larger than it looks
        "accept-encoding": "identity",
        "user-agent": "recollect",
    }
    if key is not None:
        wire = WIRES[endpoint.wire]
        found[wire.key_header] = wire.key_prefix + key.reveal()
    more = (*endpoint.headers, *transport.headers.items())
    return found | {name.lower(): value for name, value in more}


def find_secrets(endpoint: Endpoint, transport: TransportSettings) -> Iterator[ApiKey]:
    """Secrets besides the key: in headers, and the passwords of addresses and proxies."""
    for name, value in (*endpoint.headers, *transport.headers.items()):
        if any(word in name.lower() for word in _SECRET_HEADERS):
            yield ApiKey(value)
            yield ApiKey(value.rsplit(" ", 1)[-1])
    for url in (transport.proxy, endpoint.url, *getproxies().values()):
        yield from _find_passwords(url)


def _find_passwords(url: str) -> Iterator[ApiKey]:
    with suppress(ValueError):
        if password := urlsplit(url).password:
            yield ApiKey(password)
            yield ApiKey(unquote(password))


def display_host(url: str) -> str:
    """Host and port, without a user's name and password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "nowhere", parts.port
    except ValueError:
        return "an invalid address"
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" if port else shown
