"""Where a server listens: HOST:PORT as users write it, and what is safe to listen on.

A server that other machines reach needs TLS, or the user's word that something in front of it has
it: tokens and sessions would travel in the clear.
"""

from __future__ import annotations

import ipaddress
import ssl
from pathlib import Path

import msgspec

from recollect.errors import BadInput, CannotOpen

MAX_PORT = 65_535


class ListenAddress(msgspec.Struct, frozen=True):
    """A host and a port; port 0 takes a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(given: str) -> ListenAddress:
    """`HOST:PORT`, `[::1]:PORT`, or `:PORT` on this machine."""
    host, colon, port = given.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
        raise BadInput(f"{given!r} is not an address; give HOST:PORT, such as 127.0.0.1:8080")
    host = host.removeprefix("[").removesuffix("]")
    return ListenAddress(host or "127.0.0.1", int(port))


def refuse_clear_text(address: ListenAddress, *, has_tls: bool, tls_in_front: bool) -> None:
    """Raise if other machines would reach this address without TLS."""
    if not (address.is_loopback or has_tls or tls_in_front):
        raise BadInput(
            f"{address} is reached by other machines, and there is no TLS: tokens and sessions "
            "would travel in the clear; give --tls-cert and --tls-key, or --tls-in-front if a "
            "proxy in front of this server has it"
        )


def load_tls(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer with these PEM files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
        raise CannotOpen(
            f"{certificate} and {key}", f"no TLS certificate and key ({why})"
        ) from error
    return context
