"""Connections to servers: addresses, and bytes both ways, on asyncio alone.

Guarantees: an address with anything in it that could end a line, or that no host has, is refused
before a byte is sent. Every wait has a limit; what came and was not read is bounded. Whatever goes
wrong is one of the exceptions below, none of which carries a header, a key or an address's login.
`abort` closes at once, without a task that would have to be waited for.

    HttpFailed
    ├─ BadAddress     nothing was sent: the address or a header cannot be used
    ├─ BadProxy       a proxy of a kind that we cannot speak with
    ├─ BadAuthorities the certificates that were named cannot be read
    ├─ NoConnection   its cause is what the operating system or TLS said
    ├─ ProxyRefused   the proxy does not let us through
    ├─ TooSlow        while connecting, or later
    ├─ Broken         the connection ended too early, or what came is no HTTP
    └─ Damaged        a body that cannot be unpacked
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import ssl
from binascii import b2a_base64
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import zip_longest
from typing import Final, NamedTuple, cast
from urllib.parse import quote, unquote, urlsplit

from recollect.models.api_keys import ApiKey

_MAX_PIECE = 65_536
_MAX_UNREAD = 4 * _MAX_PIECE
_NEXT_ADDRESS_AFTER = 0.25  # seconds, of a host that has several (RFC 8305)
_MAX_ADDRESSES = 10
_PORTS: Final = {"http": 80, "https": 443}
_HOST = r"[0-9a-z_](?:[0-9a-z_.-]{0,252}[0-9a-z_.])?"
_IPV6 = r"[0-9a-f:.]{2,45}"
_LITERAL = r"[0-9.]+|.*:.*"
_CONTROLS = r"[\x00-\x1f\x7f]"
_KEPT = "!#$%&'()*+,/:;=?@[]~"  # as given; what is percent-encoded already stays so


class HttpFailed(Exception):
    """A request that got no whole answer."""


class BadAddress(HttpFailed): ...


class BadProxy(HttpFailed): ...


class BadAuthorities(HttpFailed): ...


class NoConnection(HttpFailed): ...


class ProxyRefused(HttpFailed): ...


class Broken(HttpFailed): ...


class TooSlow(HttpFailed):
    def __init__(self, *, connecting: bool) -> None:
        super().__init__(connecting)
        self.connecting = connecting


class Damaged(HttpFailed):
    def __init__(self, *, known: bool) -> None:
        """`known`: it is a compression that we can read, and it is damaged."""
        super().__init__(known)
        self.known = known


class Times(NamedTuple):
    """Limits in seconds."""

    connect: float  # with the proxy's answer and TLS
    wait: float  # for the next piece, and until a piece is taken


class Place(NamedTuple):
    """An address, taken apart. The host is as it is looked up, without brackets."""

    scheme: str
    host: str
    port: int
    target: str
    login: ApiKey | None  # what `Authorization` would say

    @property
    def authority(self) -> str:
        """As `Host` names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


class Way(NamedTuple):
    """Where a request goes, and through which proxy."""

    place: Place
    proxy: Place | None = None

    @property
    def is_tunnelled(self) -> bool:
        return self.proxy is not None and self.place.scheme == "https"

    @property
    def origins(self) -> tuple[object, ...]:
        """Requests with the same can share a connection."""
        return self.place.origin, self.proxy.origin if self.proxy is not None else None


def place_of(url: str) -> Place:
    """Raises `BadAddress`. `urlsplit` drops line ends in silence; here they are refused."""
    if re.search(_CONTROLS, url):
        raise BadAddress
    try:
        parts = urlsplit(url)
        port = parts.port
        host = (parts.hostname or "").lower()
        if not host.isascii():
            host = host.encode("idna").decode("ascii").lower()
        query = f"?{parts.query}" if parts.query else ""
        target = quote((parts.path or "/") + query, safe=_KEPT)
    except ValueError:
        raise BadAddress from None
    if parts.scheme not in _PORTS or not re.fullmatch(_IPV6 if ":" in host else _HOST, host):
        raise BadAddress
    login = _login(parts.username, parts.password)
    return Place(parts.scheme, host, port or _PORTS[parts.scheme], target, login)


def _login(name: str | None, password: str | None) -> ApiKey | None:
    if not name and not password:
        return None
    pair = f"{unquote(name or '')}:{unquote(password or '')}".encode(errors="replace")
    return ApiKey("Basic " + b2a_base64(pair, newline=False).decode())


class Pipe(asyncio.Protocol):
    """One connection as bytes both ways, for one task at a time.

    Not a `StreamReader`: that one cannot tell whether something came while nobody asked, and in
    Python 3.11 it goes on pausing the bare connection after TLS was put over it.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._transport: asyncio.Transport | None = None
        self._came = bytearray()
        self._is_paused = self._is_full = self._is_idle = False
        self._is_over = self._is_failed = self._is_secure = False
        self._waiting: asyncio.Future[None] | None = None
        self._bedtime: asyncio.TimerHandle | None = None

    # --- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._is_idle:  # nobody asked anything: what follows would answer the wrong question
            self.abort()
            return
        self._came += data
        if len(self._came) > _MAX_UNREAD and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._is_over = True
        if self._is_idle:
            self.abort()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None and not self._is_over:
            self._is_failed = True
            self._rescue()
        self._is_over = True
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def _rescue(self) -> None:
        """A server that answers before it has read everything, and closes, makes our next write
        fail, for which asyncio gives up the connection, with the answer unread in the socket."""
        if self._is_secure or self._transport is None or self._is_idle:
            return
        with suppress(OSError, AttributeError):
            number = os.dup(self._transport.get_extra_info("socket").fileno())
            with closing(socket.socket(fileno=number)) as bare:
                bare.settimeout(0.0)
                while len(self._came) < _MAX_UNREAD and (data := bare.recv(_MAX_PIECE)):
                    self._came += data

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # --- what we call

    async def read(self) -> bytes:
        """What came, as soon as something has; nothing means that nothing will."""
        await self._until(lambda: bool(self._came) or self._is_over)
        data = bytes(self._came[:_MAX_PIECE])
        del self._came[:_MAX_PIECE]
        if not data and self._is_failed:
            raise Broken
        if self._is_paused and self._transport is not None and len(self._came) < _MAX_PIECE:
            self._is_paused = False
            if not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more, or none is wanted."""
        if self._is_over or self._transport is None:
            raise Broken
        self._transport.write(data)
        await self._until(lambda: not self._is_full or self._is_over or self.is_refused)
        if self._is_over:
            raise Broken

    @property
    def has_unread(self) -> bool:
        return bool(self._came)

    @property
    def is_refused(self) -> bool:
        """Whether an answer has begun that makes the rest of the request useless: not 1xx, not 2xx.

        Its status is the only digit that is looked at before h11 reads the answer."""
        return self._came.startswith(b"HTTP/1.") and bytes(self._came[9:10]) in (b"3", b"4", b"5")

    async def secure(self, trust: ssl.SSLContext, host: str) -> None:
        """TLS over what is there."""
        if self._is_over or self._came or self._transport is None:
            raise Broken
        self._is_secure = True
        loop = asyncio.get_running_loop()
        over = await loop.start_tls(self._transport, self, trust, server_hostname=host)
        if over is None:
            raise Broken
        self._transport = over

    def rest(self, seconds: float) -> None:
        """Nothing is expected; whatever happens ends the connection, and so does time."""
        self._is_idle = True
        if self._came:
            self.abort()
        self._bedtime = asyncio.get_running_loop().call_later(seconds, self.abort)

    def rise(self) -> bool:
        """Whether it can be used again."""
        if self._bedtime is not None:
            self._bedtime.cancel()
        self._is_idle = False
        return not (self._is_over or self._transport is None or self._transport.is_closing())

    def abort(self) -> None:
        self._is_over = self._is_failed = True
        if self._bedtime is not None:
            self._bedtime.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    async def _until(self, ready: Callable[[], bool]) -> None:
        if ready():
            return
        try:
            async with asyncio.timeout(self._patience):
                while not ready():
                    self._waiting = asyncio.get_running_loop().create_future()
                    await self._waiting
        except TimeoutError:
            raise TooSlow(connecting=False) from None


async def open_pipe(place: Place, patience: float) -> Pipe:
    """Whichever of the host's addresses answers first. Not yet secure, whatever the address says.

    Raises what the operating system said, and `BadAddress` for a name that cannot be looked up.
    """
    if re.fullmatch(_LITERAL, place.host):
        return await _open(place.host, place.port, patience)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise BadAddress from None
    return await open_first(in_turn([str(one[4][0]) for one in found]), place.port, patience)


def in_turn(hosts: list[str]) -> list[str]:
    """The kinds of addresses in turn: where a network has lost one kind, the other comes soon."""
    six, four = ([h for h in hosts if (":" in h) == wanted] for wanted in (True, False))
    kinds = (six, four) if hosts and ":" in hosts[0] else (four, six)
    turns = [host for pair in zip_longest(*kinds) for host in pair if host is not None]
    return turns[:_MAX_ADDRESSES]


async def _open(host: str, port: int, patience: float) -> Pipe:
    pipe = Pipe(patience)
    await asyncio.get_running_loop().create_connection(lambda: pipe, host, port)
    return pipe


async def open_first(hosts: list[str], port: int, patience: float) -> Pipe:
    """Starts with the first, and with the next as soon as one failed or has taken its time.

    Not asyncio's own race: whoever cancels that one in the wrong moment leaves a socket open.
    """
    waiting, racing = list(hosts), set[asyncio.Task[Pipe]]()
    errors: list[BaseException] = []
    try:
        while waiting or racing:
            if waiting:
                racing.add(asyncio.create_task(_open(waiting.pop(0), port, patience)))
            delay = _NEXT_ADDRESS_AFTER if waiting else None
            done, _ = await asyncio.wait(racing, timeout=delay, return_when="FIRST_COMPLETED")
            for task in done:
                racing.discard(task)
                error = task.exception()
                if error is None:
                    return task.result()
                errors.append(error)
    finally:  # without a wait, in which we could be cancelled with the winner in our hands
        for task in racing:
            task.cancel()
            task.add_done_callback(_too_late)
    raise next((e for e in errors if isinstance(e, ConnectionRefusedError)), errors[0])


def _too_late(task: asyncio.Task[Pipe]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().abort()
