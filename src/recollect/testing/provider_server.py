"""A provider on this machine that plays a script, in the format of Gemini, OpenAI or Anthropic.

>>> with ProviderServer("openai", [says("hello"), faulty("half an ans", end="none")]) as server:
...     client = openai.OpenAI(base_url=server.url, api_key="any")

It listens on 127.0.0.1 only, in threads of its own that end with the `with` block, and answers one
line of the script for each request. Every client of the format can talk to it: `server.url` is the
base address. Requests are kept in `server.requests`.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import SplitResult, parse_qs, urlsplit

import msgspec

from recollect.codecs.gemini import GeminiWire
from recollect.codecs.wire_protocol import DecodedRequest
from recollect.codecs.wires import WIRES
from recollect.entries import Message, Text, Thought, ToolCall, Usage
from recollect.errors import BadInput, ModelError
from recollect.profiles import WireName
from recollect.testing.error_replies import provider_error
from recollect.testing.fault import Fault
from recollect.testing.reply_body import ReplyBody, RequestFacts, encode_body
from recollect.testing.reply_events import DIALECTS
from recollect.testing.reply_sender import send_reply
from recollect.testing.request_checks import find_role_violation, find_violation
from recollect.testing.scripted_model import Turn
from recollect.testing.wire_reply import WireReply, faulty

__all__ = ["ProviderLine", "ProviderRequest", "ProviderServer"]

MAX_REQUEST = 64_000_000  # bytes of a request's body
_BYTES_PER_TOKEN = 4  # of the usage that a reply reports if its turn names none
_PATHS: Mapping[WireName, tuple[str, ...]] = {
    "gemini": (":generateContent", ":streamGenerateContent"),
    "openai": ("/chat/completions",),
    "anthropic": ("/messages",),
}

_ProviderReply: TypeAlias = "str | Message | Turn | ModelError | WireReply | Fault"
# A line of a script: the reply, or a function that receives the request and returns the reply.
ProviderLine: TypeAlias = "_ProviderReply | Callable[[DecodedRequest], _ProviderReply]"


class ProviderRequest(msgspec.Struct, frozen=True):
    """A request as it arrived. `decoded` is None if it is not one of the format."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    decoded: DecodedRequest | None

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class ProviderServer:
    """Plays `script`, one line for each request, until it is closed.

    A request too many gets the status 500, and `exhausted` is true; with `repeat` the last line is
    played again. With `validate` a request that breaks the provider's own rules gets the status
    400, with `strict_roles` one whose roles do not alternate, as servers of small models demand;
    neither takes a line of the script. An exception in a line is raised when the server closes."""

    def __init__(
        self,
        format: WireName,  # noqa: A002
        script: Iterable[ProviderLine],
        *,
        repeat: bool = False,
        validate: bool = False,
        strict_roles: bool = False,
        port: int = 0,
    ) -> None:
        if format not in DIALECTS:
            raise ValueError(f"the format {format!r} is unknown; use one of {', '.join(DIALECTS)}")
        self.format, self.script, self.repeat = format, tuple(script), repeat
        self.validate, self.strict_roles = validate, strict_roles
        self.exhausted = False
        self._played = 0
        self._requests: list[ProviderRequest] = []
        self._failures: list[Exception] = []
        self._lock = threading.Lock()
        self._http = _LoopbackServer(self, port)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def requests(self) -> tuple[ProviderRequest, ...]:
        """The requests so far."""
        return tuple(self._requests)

    @property
    def left(self) -> int:
        """The number of lines that were not requested yet."""
        return max(len(self.script) - self._played, 0)

    def __enter__(self) -> ProviderServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection, and end the threads."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.close_all()
        self._http.server_close()
        if self._failures:
            raise self._failures.pop()

    def respond(
        self, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[WireReply, ReplyBody]:
        """The next line, for this request."""
        address = urlsplit(path)
        if not address.path.endswith(_PATHS[self.format]):
            known = " or ".join(f"…{end}" for end in _PATHS[self.format])
            return self.refuse(404, f"{address.path[:200]} is not served here, only {known}")
        with self._lock:
            decoded, problem = self._decode(address.path, body)
            self._requests.append(ProviderRequest(path, headers, body, decoded))
            if decoded is None:
                return self.refuse(400, problem)
            if not self.script or (self._played >= len(self.script) and not self.repeat):
                self.exhausted = True
                lines = f"the script has {len(self.script)} lines and got one request more"
                return self.refuse(500, f"{lines}; add a line, or pass repeat=True")
            line = self.script[min(self._played, len(self.script) - 1)]
            self._played += 1
        try:
            reply = _reply(line, decoded, self.format)
            as_list = address.path.endswith(":streamGenerateContent") and not _wants_events(address)
            facts = RequestFacts(
                model=decoded.options.model,
                usage=_usage(body, reply.turn),
                stream=decoded.options.stream,
                key=headers.get(WIRES[self.format].key_header, "").removeprefix("Bearer "),
                as_list=as_list,
            )
            return reply, encode_body(self.format, reply, facts)
        except Exception as error:  # noqa: BLE001 - `close` raises it in the test's own thread
            self._failures.append(error)
            return self.refuse(500, f"the script failed: {error}")

    def refuse(self, status: int, message: str) -> tuple[WireReply, ReplyBody]:
        reply = provider_error(self.format, status, message)
        return reply, encode_body(self.format, reply, RequestFacts("", Usage(), stream=False))

    def _decode(self, path: str, body: bytes) -> tuple[DecodedRequest | None, str]:
        """The request, or why it is refused."""
        try:
            found = self._decode_request(path, body)
        except BadInput as error:
            return None, str(error)
        sent = msgspec.json.decode(body) if self.validate or self.strict_roles else {}
        problem = find_violation(self.format, sent) if self.validate else ""
        if self.strict_roles:
            problem = problem or find_role_violation(self.format, sent)
        return (None, problem) if problem else (found, "")

    def _decode_request(self, path: str, body: bytes) -> DecodedRequest:
        if self.format != "gemini":
            return DIALECTS[self.format].wire.decode_request(body)
        model, _, method = path.rpartition("/")[2].partition(":")
        found = GeminiWire(model=model).decode_request(body)
        streams = method == "streamGenerateContent"
        options = msgspec.structs.replace(found.options, model=model, stream=streams)
        return DecodedRequest(options, found.messages)


def _reply(line: ProviderLine, request: DecodedRequest, format_: WireName) -> WireReply:
    if callable(line):
        line = line(request)
    if isinstance(line, Fault):
        return line.reply(format_)
    if isinstance(line, ModelError):
        line = Turn(error=line)
    if isinstance(line, Turn) and line.error is not None:
        if line.steps:  # a stream that breaks
            return faulty(line, end="none", close="early")
        status = getattr(line.error, "status", 0) or 500
        said = getattr(line.error, "said", "") or str(line.error)
        return faulty(provider_error(format_, status, said), delay=line.delay)
    if isinstance(line, str | Message | Turn | WireReply):
        return faulty(line)
    raise TypeError(
        "a script has texts, messages, turns, errors, replies and faults, "
        f"not {type(line).__name__}"
    )


def _wants_events(address: SplitResult) -> bool:
    return parse_qs(address.query).get("alt") == ["sse"]


def _usage(body: bytes, turn: Turn) -> Usage:
    """A rough count, as every provider reports one."""
    said = 0
    for part in turn.steps:
        if isinstance(part, Text | Thought):
            said += len(part.text)
        elif isinstance(part, ToolCall):
            said += len(part.name) + len(part.arguments)
    sent, written = len(body) // _BYTES_PER_TOKEN + 1, said // _BYTES_PER_TOKEN + 1
    return Usage(input=sent, output=written, total=sent + written)


class _LoopbackServer(ThreadingHTTPServer):
    request_queue_size = 128  # many clients may connect at once; with 5 their connections stall

    def __init__(self, provider: ProviderServer, port: int) -> None:
        self.provider = provider
        self.closing = threading.Event()
        self._open: dict[threading.Thread, socket.socket] = {}
        super().__init__(("127.0.0.1", port), _ProviderHandler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread that `close_all` knows before it runs."""
        thread = threading.Thread(
            target=self._serve_connection, args=(request, client_address), daemon=True
        )
        self._open[thread] = request
        thread.start()

    def _serve_connection(self, request: Any, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            del self._open[threading.current_thread()]

    def close_all(self) -> None:
        self.closing.set()
        for thread, connection in list(self._open.items()):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()

    def shutdown_request(self, request: Any) -> None:
        """A connection that is to be reset must not be ended in order before that."""
        if request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER):
            self.close_request(request)
        else:
            super().shutdown_request(request)


class _ProviderHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _LoopbackServer

    def handle(self) -> None:
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError):  # a client that went away
            super().handle()

    def do_POST(self) -> None:
        body, provider = self._read_body(), self.server.provider
        if body is None:
            too_long = f"a request of more than {MAX_REQUEST:,} bytes is refused"
            found = provider.refuse(413, too_long)
        else:
            headers = {name.lower(): value for name, value in self.headers.items()}
            found = provider.respond(self.path, headers, body)
        keep = send_reply(self.connection, *found, self.server.closing)
        self.close_connection = self.close_connection or not keep or body is None

    do_GET = do_POST  # noqa: N815 - the name that http.server looks for

    def _read_body(self) -> bytes | None:
        """None if it is too long."""
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            size = int(self.headers.get("content-length", "0"))
            return self.rfile.read(size) if 0 <= size <= MAX_REQUEST else None
        found = bytearray()
        while size := int(self.rfile.readline(100).split(b";")[0], 16):
            if len(found) + size > MAX_REQUEST:
                return None
            found += self.rfile.read(size)
            self.rfile.readline(100)
        self.rfile.readline(100)
        return bytes(found)

    def log_message(self, *_: Any) -> None:
        """What a client did is in `requests`."""
