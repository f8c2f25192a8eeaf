"""One request and its answer over HTTP/1.1: a small client around h11, which reads what is hostile.

Guarantees: an answer that was cut off is `Broken`, never a silent end. An answer that came before
the request was through is read. First line and headers are bounded, a compressed body is unpacked
in bounded pieces. A connection is used again only after an answer was read to its end and nothing
came behind it; at most four rest, for a minute. Redirects are not followed, nothing is logged.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from recollect.models.connecting import (
    BadAddress,
    Broken,
    Damaged,
    NoConnection,
    Pipe,
    Place,
    ProxyRefused,
    Times,
    TooSlow,
    Way,
    open_pipe,
    place_of,
)

if TYPE_CHECKING:
    import zlib

    import h11

Headers: TypeAlias = Sequence[tuple[str, str]]
# Whose certificates are trusted, asked for when one will have to be judged.
Trust: TypeAlias = Callable[[], ssl.SSLContext]
MAX_HEAD = 65_536  # bytes of an answer's first line and headers, give or take one piece
MAX_UNPACKED = 1_000_000  # bytes out of a compressed body at a time
_MAX_INTERIM = 20  # answers that only say that the real one will come
_MAX_IDLE = 4
_REST = 60.0  # seconds
_NAME = r"[-!#$%&'*+.^_`|~0-9A-Za-z]+"  # a token of RFC 9110
_SEEN = r"[!-~\x80-\xff]"
_VALUE = rf"(?:{_SEEN}(?:[\t -~\x80-\xff]*{_SEEN})?)?"
_PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # as zlib calls them
_BARE_DEFLATE = -15


class _Link(NamedTuple):
    """A connection, and where it leads."""

    origins: tuple[object, ...]
    pipe: Pipe


class _Request(NamedTuple):
    head: bytes
    size: int
    connection: str  # what we say about its future


class Client:
    """Asks servers; for one event loop. `way_to` says through which proxy a place is reached."""

    def __init__(self, way_to: Callable[[Place], Way], times: Times, trust: Trust) -> None:
        self._way_to, self._times, self._trust = way_to, times, cache(trust)
        self._idle: list[_Link] = []
        self._busy: dict[int, _Link] = {}
        self._is_closed = False

    async def post(self, url: str, headers: Headers, body: Iterable[bytes], size: int) -> Answer:
        """The answer, as soon as its headers are there. It has to be closed."""
        way = self._way_to(place_of(url))
        request = _request(way, headers, size)
        link = await self._rested(way) or await self._new(way)
        self._busy[id(link)] = link
        try:
            talk = _heard(request, whole=await _send(link.pipe, request, body))
            return Answer(link, talk, await _head(link.pipe, talk), self._done)
        except BaseException:
            self._done(link, again=False)
            raise

    async def aclose(self) -> None:
        """Whoever still reads an answer is told that the connection broke."""
        self._is_closed = True
        for link in (*self._idle, *self._busy.values()):
            link.pipe.abort()
        self._idle.clear()
        await asyncio.sleep(0)  # the sockets are closed in the loop's next round

    async def _new(self, way: Way) -> _Link:
        if self._is_closed:
            raise Broken
        return _Link(way.origins, await connect(way, self._times, self._trust))

    async def _rested(self, way: Way) -> _Link | None:
        if not self._idle:
            return None
        for _ in range(2):  # the loop looks at its sockets and tells us who hung up meanwhile
            await asyncio.sleep(0)
        for link in [one for one in reversed(self._idle) if one.origins == way.origins]:
            self._idle.remove(link)
            if link.pipe.rise():
                return link
        return None

    def _done(self, link: _Link, *, again: bool) -> None:
        if self._busy.pop(id(link), None) is None:
            return
        if not again or self._is_closed:
            link.pipe.abort()
            return
        link.pipe.rest(_REST)
        self._idle.append(link)
        if len(self._idle) > _MAX_IDLE:
            self._idle.pop(0).pipe.abort()


class Answer:
    """Status, headers, and the body as it comes."""

    def __init__(
        self,
        link: _Link,
        talk: h11.Connection,
        response: h11.Response,
        done: Callable[..., None],
    ) -> None:
        self.status = response.status_code
        self.headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers
        )
        self._link, self._talk, self._done = link, talk, done
        self._is_over = False

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Unpacked. Whoever stops before the end closes the connection."""
        again = False
        try:
            unpack = _Unpacking(_values(self.headers, "content-encoding"))
            while (packed := await _data(self._link.pipe, self._talk)) is not None:
                for piece in unpack.feed(packed):
                    yield piece
                    if unpack.is_packed:
                        await asyncio.sleep(0)  # a little becomes much: let the clock be heard
            unpack.finish()
            # who says its length twice may mean something else by it than we do
            lengths = _values(self.headers, "content-length", "transfer-encoding")
            again = len(lengths) < 2 and _is_ready_again(self._talk)
        finally:
            self._end(again=again)

    def close(self) -> None:
        """At once, if the body was not read to its end."""
        self._end(again=False)

    def _end(self, *, again: bool) -> None:
        if not self._is_over:  # afterwards the connection may be another answer's
            self._is_over = True
            self._done(self._link, again=again)


# --- the request ---------------------------------------------------------------------------------


def _request(way: Way, headers: Headers, size: int) -> _Request:
    """Written by us: h11 takes its time to load, and can do so while the server thinks."""
    place, target = way.place, way.place.target
    found = {name.lower(): (name, value) for name, value in headers}
    found.pop("transfer-encoding", None)  # the body has a length
    found["content-length"] = ("Content-Length", str(size))
    if place.login is not None:
        found["authorization"] = ("Authorization", place.login.reveal())
    if way.proxy is not None and not way.is_tunnelled:
        target = f"http://{place.authority}{target}"
        if way.proxy.login is not None:
            found["proxy-authorization"] = ("Proxy-Authorization", way.proxy.login.reveal())
    pairs = [found.pop("host", ("Host", place.authority)), *found.values()]
    for name, value in pairs:
        if not (re.fullmatch(_NAME, name) and re.fullmatch(_VALUE, value)):
            raise BadAddress
    lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs), "", ""]
    connection = found.get("connection", ("", "keep-alive"))[1]
    return _Request("\r\n".join(lines).encode("latin-1"), size, connection)


async def _send(pipe: Pipe, request: _Request, body: Iterable[bytes]) -> bool:
    """Whether it went through; not, if an answer is there that makes the rest useless."""
    waiting, left = request.head, request.size
    try:
        for page in body:
            left -= len(page)
            if left < 0:
                raise BadAddress
            await pipe.write(waiting + page)
            waiting = b""
            if pipe.is_refused:
                return False
            await asyncio.sleep(0)  # the loop sees an answer before the next write fails for it
        if waiting:
            await pipe.write(waiting)
    except (Broken, TooSlow):
        if not pipe.has_unread:
            raise
        return False
    if left:  # the server would wait for it for ever
        raise BadAddress
    return True


def _heard(request: _Request, *, whole: bool) -> h11.Connection:
    """As h11 would stand had it written the request."""
    import h11

    talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    size, connection = b"0" if whole else b"1", request.connection.encode("latin-1")
    told = [(b"Host", b"-"), (b"Content-Length", size), (b"Connection", connection)]
    talk.send(h11.Request(method="POST", target="/", headers=told))
    if whole:
        talk.send(h11.EndOfMessage())
    return talk


# --- the answer ----------------------------------------------------------------------------------


async def _head(pipe: Pipe, talk: h11.Connection) -> h11.Response:
    import h11

    for _ in range(_MAX_INTERIM + 1):
        event = await _event(pipe, talk)
        if isinstance(event, h11.Response):
            return event
        if not isinstance(event, h11.InformationalResponse):
            break
    raise Broken


async def _data(pipe: Pipe, talk: h11.Connection) -> bytes | None:
    """The next bytes of the body; None at its end. Trailers are not looked at."""
    import h11

    event = await _event(pipe, talk)
    if isinstance(event, h11.Data):
        return bytes(event.data)
    if isinstance(event, h11.EndOfMessage):
        return None
    raise Broken


async def _event(pipe: Pipe, talk: h11.Connection) -> object:
    """The next event of h11, as soon as enough has come for one."""
    import h11

    while True:
        try:
            event = talk.next_event()
        except h11.RemoteProtocolError:
            raise Broken from None
        if event is not h11.NEED_DATA:
            return event
        talk.receive_data(await pipe.read())


def _is_ready_again(talk: h11.Connection) -> bool:
    import h11

    ended = talk.our_state is h11.DONE and talk.their_state is h11.DONE
    return ended and talk.trailing_data == (b"", False)


def _values(headers: Headers, *names: str) -> list[str]:
    return [value for name, value in headers if name.lower() in names]


class _Unpacking:
    """A body as it was before it was compressed. We ask for none that is; some are nevertheless."""

    def __init__(self, encodings: list[str]) -> None:
        given = [word.strip().lower() for value in encodings for word in value.split(",")]
        kinds = [word for word in given if word not in ("", "identity")]
        if len(kinds) > 1 or any(kind not in _PACKED for kind in kinds):
            raise Damaged(known=False)
        self.is_packed = bool(kinds)
        self._bits = _PACKED[kinds[0]] if kinds else 0
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        import zlib

        if not self.is_packed:
            yield data
            return
        if self._stream is None:
            # some servers send "deflate" without the header of zlib, whose first byte ends in 8
            bare = self._bits == _PACKED["deflate"] and data[0] & 15 != 8
            self._stream = zlib.decompressobj(_BARE_DEFLATE if bare else self._bits)
        full = True
        while data or full:
            if self._stream.eof:
                break
            try:
                piece = self._stream.decompress(data, MAX_UNPACKED)
            except zlib.error:
                raise Damaged(known=True) from None
            data, full = self._stream.unconsumed_tail, len(piece) == MAX_UNPACKED
            if piece:
                yield piece
        if data or self._stream.unused_data:
            raise Damaged(known=True)

    def finish(self) -> None:
        if self._stream is not None and not self._stream.eof:
            raise Damaged(known=True)


# --- the way -------------------------------------------------------------------------------------


async def connect(way: Way, times: Times, trust: Trust) -> Pipe:
    """A connection on which the request can be written: through the proxy, and secure."""
    limit = asyncio.timeout(times.connect)
    try:
        async with limit:
            return await _connect(way, times, trust)
    except OSError as error:  # those of TLS and TimeoutError are among them
        if limit.expired():
            raise TooSlow(connecting=True) from None
        raise NoConnection from error


async def _connect(way: Way, times: Times, trust: Trust) -> Pipe:
    first = way.proxy or way.place
    pipe = await open_pipe(first, times.wait)
    try:
        if first.scheme == "https":
            await pipe.secure(trust(), first.host)
        if way.proxy is not None and way.is_tunnelled:
            await _tunnel(pipe, way.place, way.proxy)
            await pipe.secure(trust(), way.place.host)
    except BaseException:
        pipe.abort()
        raise
    return pipe


async def _tunnel(pipe: Pipe, place: Place, proxy: Place) -> None:
    """Asks a proxy to hand bytes on. It is told where to, and nothing of the request."""
    import h11

    host = f"[{place.host}]" if ":" in place.host else place.host
    target = f"{host}:{place.port}"
    headers = [("Host", target), ("User-Agent", "recollect")]
    if proxy.login is not None:
        headers.append(("Proxy-Authorization", proxy.login.reveal()))
    talk = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    request = h11.Request(method="CONNECT", target=target, headers=headers)
    await pipe.write(talk.send(request) + talk.send(h11.EndOfMessage()))
    answer = await _head(pipe, talk)
    if not 200 <= answer.status_code < 300:
        raise ProxyRefused
    if talk.trailing_data[0]:  # TLS begins with us
        raise Broken
