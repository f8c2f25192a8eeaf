"""A client that looks at the bytes: what a reply is on the wire, and how its connection ends."""

from __future__ import annotations

import json
import re
import socket
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from recollect.profiles import WireName

PATIENCE = 60.0
QUIET = 0.3  # seconds without a byte, where a silence is expected
KEY = "sk-test-0123456789abcdef"
BODIES: dict[WireName, dict[str, Any]] = {
    "openai": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "anthropic": {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
    },
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}
_KEY_HEADERS = {
    "openai": f"authorization: Bearer {KEY}",
    "anthropic": f"x-api-key: {KEY}",
    "gemini": f"x-goog-api-key: {KEY}",
}
_PATHS = {"openai": "/chat/completions", "anthropic": "/v1/messages"}


@dataclass
class Seen:
    """A response. `complete` says whether HTTP calls it so."""

    format: WireName
    raw: bytes
    ending: Literal["complete", "closed", "reset", "open", "enough"]
    pieces: list[bytes] = field(default_factory=list)  # of a chunked body

    @cached_property
    def head(self) -> list[str]:
        return self.raw.partition(b"\r\n\r\n")[0].decode().split("\r\n")

    @property
    def status(self) -> int:
        return int(self.head[0].split()[1])

    @property
    def headers(self) -> dict[str, str]:
        return dict(line.split(": ", 1) for line in self.head[1:])

    @cached_property
    def body(self) -> bytes:
        data = self.raw.partition(b"\r\n\r\n")[2]
        return b"".join(self.pieces) if self.pieces else data

    @cached_property
    def events(self) -> list[Any]:
        """The data of the events, as JSON where it is; other bodies are one event."""
        text = self.body.decode("utf-8", "replace").removeprefix("\ufeff")
        if self.headers["content-type"] == "application/json" and not self.is_stream:
            return [_json(text)]
        lines = re.split("\r\n|\r|\n", text)
        return [_json(line[6:]) for line in lines if line.startswith("data: ")]

    @property
    def is_stream(self) -> bool:
        return self.body.removeprefix(b"\xef\xbb\xbf").startswith((b"data: ", b"event: "))

    def values(self, *names: str) -> list[Any]:
        """What stands under these keys, in order."""
        found: list[Any] = []
        waiting = list(reversed(self.events))
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                found += [value[key] for key in value if key in names]
                waiting += reversed(list(value.values()))
            elif isinstance(value, list):
                waiting += reversed(value)
        return found

    @property
    def words(self) -> list[str]:
        words = self.values("finishReason", "finish_reason", "stop_reason")
        return [word for word in words if word is not None]

    @property
    def has_marker(self) -> bool:
        last = self.events[-1]
        return last == "[DONE]" or (isinstance(last, dict) and last.get("type") == "message_stop")

    @property
    def text(self) -> str:
        keys = {"openai": ("content",), "anthropic": ("text",), "gemini": ("text",)}
        return "".join(t for t in self.values(*keys[self.format]) if isinstance(t, str))

    @property
    def arguments(self) -> str:
        keys = {"openai": "arguments", "anthropic": "partial_json", "gemini": "args"}
        found = self.values(keys[self.format])
        return "".join(a if isinstance(a, str) else json.dumps(a) for a in found)

    @property
    def names(self) -> list[str]:
        return [name for name in self.values("name") if isinstance(name, str)]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def request_bytes(format_: WireName, *, stream: bool = True) -> bytes:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = _PATHS.get(format_, f"/v1beta/models/m:{method}")
    body = json.dumps(BODIES[format_] | ({"stream": stream} if format_ != "gemini" else {}))
    lines = [f"POST {path} HTTP/1.1", "host: x", _KEY_HEADERS[format_]]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", body]).encode()


def ask(
    url: str,
    format_: WireName,
    *,
    stream: bool = True,
    most: int = 30_000_000,
    quiet: bool = False,
) -> Seen:
    """One request on a connection of its own; reads at most `most` bytes. `quiet`: a silence is
    expected, and ends the reading."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        connection.sendall(request_bytes(format_, stream=stream))
        return read_response(connection, format_, most, quiet=quiet)


def read_response(
    connection: socket.socket, format_: WireName, most: int = 30_000_000, *, quiet: bool = False
) -> Seen:
    raw = bytearray()
    seen = Seen(format_, b"", "enough")
    connection.settimeout(QUIET if quiet else PATIENCE)
    while len(raw) < most:
        try:
            data = connection.recv(1 << 20)
        except ConnectionResetError:
            seen.ending = "reset"
            break
        except TimeoutError:
            seen.ending = "open"
            break
        raw += data
        if not data or _is_complete(raw):
            seen.ending = "complete" if _is_complete(raw) else "closed"
            break
    seen.raw = bytes(raw)
    if b"transfer-encoding: chunked" in raw.partition(b"\r\n\r\n")[0]:
        seen.pieces = list(_dechunk(seen.raw.partition(b"\r\n\r\n")[2]))
    return seen


def _is_complete(raw: bytearray) -> bool:
    head, end, body = raw.partition(b"\r\n\r\n")
    if not end:
        return False
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"\r\n0\r\n\r\n") or body == b"0\r\n\r\n"
    length = re.search(rb"content-length: (-?\d+)", head)
    return length is not None and len(body) >= int(length[1])


def _dechunk(data: bytes) -> list[bytes]:
    found, at = [], 0
    while (line := data.find(b"\r\n", at)) >= 0 and (size := int(data[at:line], 16)):
        found.append(data[line + 2 : line + 2 + size])
        at = line + 2 + size + 2
    return found


def gunzip(data: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(data)
