"""Files that a server offers to one client for a short time: fetched over HTTP, each once.

A token of 256 random bits is the permission; it is used up by the first `take`, or by time. What
is offered is held in memory, within a bound.
"""

from __future__ import annotations

import hashlib
import time

import msgspec

from recollect.errors import NotFound, ServerBusy
from recollect.server.access import new_token
from recollect.text import format_size

MAX_BYTES = 100_000_000  # of all offers together
SECONDS = 300.0
PATH = "/downloads/"  # and the token


class Download(msgspec.Struct, frozen=True):
    """An offer. `checksum` is `sha256:` and 64 digits."""

    token: str
    filename: str
    mime: str
    size: int
    checksum: str
    data: bytes
    expires: float  # by the monotonic clock


class DownloadOffers:
    """The offers of one server; `url` is the HTTP server's own, such as http://127.0.0.1:8080."""

    def __init__(self, url: str = "", *, seconds: float = SECONDS, limit: int = MAX_BYTES) -> None:
        self.url, self._seconds, self._limit = url.rstrip("/"), seconds, limit
        self._offers: dict[str, Download] = {}

    def register(self, filename: str, data: bytes, mime: str = "application/json") -> Download:
        self._forget_expired()
        held = sum(offer.size for offer in self._offers.values())
        if held + len(data) > self._limit:
            raise ServerBusy(
                f"{filename} has {format_size(len(data))}, and offers have at most "
                f"{format_size(self._limit)} together",
                "fetch those before it, or use `recollect export` on the server",
            )
        checksum = f"sha256:{hashlib.sha256(data).hexdigest()}"
        expires = time.monotonic() + self._seconds
        offer = Download(new_token(), filename, mime, len(data), checksum, data, expires)
        self._offers[offer.token] = offer
        return offer

    def take(self, token: str) -> Download:
        """The offer with this token, which is used up by that."""
        self._forget_expired()
        offer = self._offers.pop(token, None)
        if offer is None:
            raise NotFound("there is no such download: it was fetched, or its time is over")
        return offer

    def document(self, offer: Download) -> dict[str, object]:
        """What a client is told."""
        return {
            "url": f"{self.url}{PATH}{offer.token}",
            "filename": offer.filename,
            "size": offer.size,
            "checksum": offer.checksum,
        }

    def _forget_expired(self) -> None:
        now = time.monotonic()
        for token in [token for token, offer in self._offers.items() if offer.expires <= now]:
            del self._offers[token]
