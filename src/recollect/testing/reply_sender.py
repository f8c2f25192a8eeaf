"""Sends one reply over a connection, with the HTTP around it, as correct or as wrong as it says."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus

from recollect.testing.reply_body import ReplyBody
from recollect.testing.wire_reply import WireReply

_RESET = struct.pack("ii", 1, 0)  # linger for no time: closing sends a reset


def send_reply(
    connection: socket.socket, reply: WireReply, body: ReplyBody, closing: threading.Event
) -> bool:
    """Whether the connection can be used for another request."""
    framing = reply.framing or ("chunked" if body.streamed else "length")
    if closing.wait(reply.delay):
        return False
    connection.sendall(_head(reply, body, framing))
    if closing.wait(reply.turn.delay):
        return False
    for number, piece in enumerate(body.pieces):
        if number and reply.pause and closing.wait(reply.pause):
            return False
        connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if framing == "chunked" else piece)
    if reply.close == "silence":
        _wait_until_closed(connection)
    elif reply.close == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    elif reply.close == "clean" and framing == "chunked":
        connection.sendall(b"0\r\n\r\n")
    return reply.close == "clean" and framing != "close" and not reply.length_error


def _head(reply: WireReply, body: ReplyBody, framing: str) -> bytes:
    return "".join(f"{line}\r\n" for line in _head_lines(reply, body, framing)).encode("latin-1")


def _head_lines(reply: WireReply, body: ReplyBody, framing: str) -> Iterator[str]:
    phrase = HTTPStatus(reply.status).phrase if reply.status in _KNOWN else "Unknown"
    yield f"HTTP/1.1 {reply.status} {phrase}"
    yield f"content-type: {body.content_type}"
    if framing == "chunked":
        yield "transfer-encoding: chunked"
    elif framing == "length" and body.length is not None:
        yield f"content-length: {body.length}"
    else:
        yield "connection: close"
    if reply.gzip:
        yield "content-encoding: gzip"
    yield from (f"{name}: {value}" for name, value in reply.headers)
    yield ""


_KNOWN = frozenset(HTTPStatus)


def _wait_until_closed(connection: socket.socket) -> None:
    with suppress(OSError):
        while connection.recv(65_536):
            pass
