"""Files that a server offers for one download each, by an unguessable token that works once."""

from __future__ import annotations

import secrets
import time

import msgspec

MAX_OFFERS = 1_000
OFFER_SECONDS = 600.0


class DownloadFile(msgspec.Struct, frozen=True):
    name: str
    data: bytes
    expires: float  # on the monotonic clock


class DownloadOffers:
    """The offers that nobody took yet; old ones are forgotten."""

    def __init__(self) -> None:
        self._offers: dict[str, DownloadFile] = {}

    def offer(self, name: str, data: bytes) -> str:
        """The token with which the file can be fetched, once."""
        token = secrets.token_urlsafe(32)
        self._offers[token] = DownloadFile(name, data, time.monotonic() + OFFER_SECONDS)
        while len(self._offers) > MAX_OFFERS:
            del self._offers[next(iter(self._offers))]
        return token

    def take(self, token: str) -> DownloadFile | None:
        found = self._offers.pop(token, None)
        return found if found is not None and found.expires > time.monotonic() else None
