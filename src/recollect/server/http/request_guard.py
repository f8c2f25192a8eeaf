"""Who may reach the server at all: the checks before any route, and the headers of every response.

A web page must not reach a server on this machine. So the `Host` must be in an exact list (a name
that was pointed at this address is not), a request that a browser sends from another origin is
refused, there is no CORS, and the token is a header that a page cannot know. Bodies are JSON with
a limit that holds while they are read. Neither the token nor a path is ever logged.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from recollect.server.access import AccessCheck, AccessTokens, Identity
from recollect.server.http.problem_details import RequestRefused, error_response

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
PUBLIC_PATHS = frozenset({"/health/live", "/health/ready", "/openapi.json"})
DOWNLOADS = "/downloads/"  # a one-time token in the path is the permission
MAX_HEADERS = 32_768  # bytes
UPLOADS = frozenset({"/api/imports"})  # the bytes of a file
_log = logging.getLogger("recollect.server.http")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
]


class HttpOptions(msgspec.Struct, frozen=True):
    """What a server accepts; the caller decides."""

    allowed_hosts: tuple[str, ...] = ()  # as in the `Host` header; loopback names are always in
    body_limit: int = 8_000_000  # bytes
    upload_limit: int = 256_000_000  # bytes, of a file to import
    streams: int = 500  # event streams at the same time, of all clients
    heartbeat_seconds: float = 15.0


def identity_of(request: Request) -> Identity:
    """Who sent a request that came through the guard."""
    identity = request.scope["recollect.identity"]
    assert isinstance(identity, Identity)
    return identity


def access_of(request: Request) -> AccessCheck:
    """Whether who sent a request that came through the guard may still read its response."""
    check = request.scope["recollect.access"]
    assert isinstance(check, AccessCheck)
    return check


class RequestGuard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, tokens: AccessTokens, options: HttpOptions) -> None:
        self._app, self._tokens, self._options = app, tokens, options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # there is no WebSocket, and no lifespan
            raise RuntimeError(f"unexpected ASGI scope {scope['type']}")
        secured = _SecuredSend(send)
        headers = _Headers(scope["headers"])
        try:
            check_head(headers)
            check_host(headers, scope, self._options.allowed_hosts)
            check_origin(headers)
            access = self._identify(headers, scope["path"])
            scope["recollect.identity"], scope["recollect.access"] = access
            check_protocol(headers)
            limit = self._body_limit(scope["path"])
            check_body(headers, scope, limit)
        except RequestRefused as refusal:
            address = (scope.get("client") or ("?", 0))[0]
            _log.warning("%s: request refused: %s", address, refusal.code)
            await error_response(refusal, scope["path"])(scope, receive, secured)
            return
        try:
            await self._app(scope, _limited(receive, limit), secured)
        except ClientDisconnect:  # in the middle of its body: nobody is left to answer
            return
        except Exception as error:  # noqa: BLE001 - the last place: logged, and told as a 500
            await secured.fail(error, scope, receive)

    def _identify(
        self, headers: _Headers, path: str
    ) -> tuple[Identity, AccessCheck] | tuple[None, None]:
        if path in PUBLIC_PATHS or path.startswith(DOWNLOADS):
            return None, None
        scheme, _, token = headers.one("authorization").partition(" ")
        token = token.strip()
        identity = self._tokens.identify(token) if scheme.lower() == "bearer" else None
        if identity is None:
            fact = "no token was given" if not token else "the token is not known to this server"
            raise unauthorized(f"{fact}; send `Authorization: Bearer TOKEN`")
        return identity, AccessCheck(self._tokens, token, identity)

    def _body_limit(self, path: str) -> int:
        return self._options.upload_limit if path in UPLOADS else self._options.body_limit


class _Headers:
    """The headers of a request; one that stands twice is refused where it decides something."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._raw = tuple(raw)

    @property
    def size(self) -> int:
        return sum(len(name) + len(value) for name, value in self._raw)

    def one(self, name: str) -> str:
        found = [value for key, value in self._raw if key == name.encode()]
        if len(found) > 1:
            raise RequestRefused(
                400,
                "repeated-header",
                "A header stands twice",
                f"`{name}` may stand once; send one",
            )
        return found[0].decode("latin-1") if found else ""


def check_head(headers: _Headers) -> None:
    """Raise if the headers are too large, or say in two ways where the body ends: a proxy in front
    could read another request in it than we do."""
    if headers.size > MAX_HEADERS:
        detail = f"the headers have more than {MAX_HEADERS:,} bytes; send fewer"
        raise RequestRefused(431, "headers-too-large", "The headers are too large", detail)
    if headers.one("content-length") and headers.one("transfer-encoding"):
        detail = "`content-length` and `transfer-encoding` exclude each other; send one"
        refusal = RequestRefused(400, "two-lengths", "The body has two lengths", detail)
        refusal.headers["connection"] = "close"
        raise refusal


def check_host(headers: _Headers, scope: Scope, allowed: Iterable[str]) -> None:
    """Raise unless the `Host` is one of this server's own names, with its port."""
    given = headers.one("host").lower()
    port = (scope.get("server") or ("", 0))[1]
    own = {f"{name}:{port}" for name in LOOPBACK_NAMES}
    if port == _DEFAULT_PORTS[scope["scheme"]]:
        own.update(LOOPBACK_NAMES)
    if given not in own and given not in {name.lower() for name in allowed}:
        detail = f"the host {given[:80]!r} is not served here; `--allow-host` allows a name"
        raise RequestRefused(421, "unknown-host", "This server has another name", detail)


def check_origin(headers: _Headers) -> None:
    """Raise if a browser sent this for a page of another origin."""
    origin, site = headers.one("origin"), headers.one("sec-fetch-site")
    if origin and not _same_origin(origin, headers.one("host")):
        detail = f"a page from {origin[:80]!r} may not use this server; there is no CORS"
        raise RequestRefused(403, "foreign-origin", "Another origin", detail)
    if site not in ("", "same-origin", "none"):
        detail = "a page from another site may not use this server"
        raise RequestRefused(403, "foreign-origin", "Another origin", detail)


def _same_origin(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT_PORTS or origin != f"{parts.scheme}://{parts.netloc}":
        return False
    bare = port is None or port == _DEFAULT_PORTS[parts.scheme]
    names = {parts.netloc, f"{parts.netloc}:{_DEFAULT_PORTS[parts.scheme]}" if bare else ""}
    return host.lower() in {name.lower() for name in names}


def check_protocol(headers: _Headers) -> None:
    """Raise if a client that was let in asks for another protocol than HTTP."""
    if headers.one("upgrade").lower() == "websocket":
        detail = "WebSockets are not spoken here; send a request, with `stream` for its events"
        raise RequestRefused(400, "websocket-not-supported", "No WebSockets", detail)


def check_body(headers: _Headers, scope: Scope, limit: int) -> None:
    """Raise if the body is not JSON (of an upload: not bytes), or says that it is too long."""
    length, chunked = headers.one("content-length"), headers.one("transfer-encoding")
    if length in ("", "0") and not chunked:
        return
    if length.isdecimal() and int(length) > limit:
        raise body_too_large(limit)
    given = headers.one("content-type").partition(";")[0].strip().lower()
    wanted = "application/octet-stream" if scope["path"] in UPLOADS else "application/json"
    if given != wanted:
        detail = f"the body's type is {given[:80] or 'not given'!r}; send `Content-Type: {wanted}`"
        raise RequestRefused(415, "content-type", "The body has another type", detail)


def body_too_large(limit: int) -> RequestRefused:
    detail = f"the body is longer than {limit:,} bytes; send less"
    return RequestRefused(413, "body-too-large", "The body is too large", detail)


def unauthorized(detail: str) -> RequestRefused:
    refusal = RequestRefused(401, "unauthorized", "A token is needed", detail)
    refusal.headers["www-authenticate"] = 'Bearer realm="recollect"'
    return refusal


def _limited(receive: Receive, limit: int) -> Receive:
    """Count the body while it is read: a length that was not said, or was a lie."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > limit:
                raise body_too_large(limit)
        return message

    return counted


class _SecuredSend:
    """Adds the security headers to a response."""

    def __init__(self, send: Send) -> None:
        self._send, self._started = send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            given = {key for key, _ in message["headers"]}
            caching = [] if b"cache-control" in given else [(b"cache-control", b"no-store")]
            message["headers"] = [*message["headers"], *_SECURITY_HEADERS, *caching]
        await self._send(message)

    async def fail(self, error: Exception, scope: Scope, receive: Receive) -> None:
        """Answer a request with an error that no handler knew."""
        response = error_response(error, scope["path"])
        if self._started:  # too late for a status: the server cuts the connection
            raise error
        await response(scope, receive, self)
