"""Server-sent events: bytes in, the data of complete events out.

Guarantees: any chunking of the bytes gives the same events; the cost is linear in the bytes, even
for tiny chunks; a single event and a whole stream are bounded. Only `data` is read: the three
providers repeat in it what `event` says, and `id` and `retry` serve a reconnection that no provider
offers. Lines outside the protocol are kept in `stray`, to show what came instead of events.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.codecs.reply_limits import MAX_EVENT, MAX_LINES, MAX_REPLY, check_values, refuse

MAX_STRAY = 4_000_000  # bytes of lines outside the protocol
NO_EVENTS: tuple[bytes, ...] = ()
_NEWLINE, _RETURN = 10, 13
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b":", b"event:", b"id:", b"retry:")  # besides `data:`
_NAMES = frozenset({b"data", b"event", b"id", b"retry"})  # a field without a value


class SseParser:
    __slots__ = ("_after_return", "_data", "_line", "_size", "_stray", "_total")

    def __init__(self) -> None:
        self._line = bytearray()  # the unfinished line
        self._data: list[bytes] = []  # data lines of the unfinished event
        self._size = 0  # bytes in those
        self._total = 0  # bytes that were split into lines
        self._after_return = False  # a newline that comes next ends the same line
        self._stray = bytearray()

    def feed(self, piece: bytes) -> Sequence[bytes]:
        """The data of every event that ended in this piece."""
        line = self._line
        line += piece
        # numbers, because `b"\n" in piece` costs ten times as much: CPython tries an index first
        if _NEWLINE in piece or _RETURN in piece or len(line) > MAX_EVENT:
            return self._take()
        return NO_EVENTS

    def close(self) -> Sequence[bytes]:
        """The event that the server did not end with an empty line, if any."""
        self._line += b"\n\n"
        return self._take()

    @property
    def stray(self) -> bytes:
        """The lines outside the protocol: what came instead of events."""
        return bytes(self._stray[1:])

    def _take(self) -> Sequence[bytes]:
        """Split into lines; the unfinished last line waits."""
        text = bytes(self._line)
        self._line = bytearray()  # a large line exists as seldom as possible
        if not self._total and text.startswith(_BOM):
            text = text[3:]
        self._total += len(text)
        if self._after_return or _RETURN in text:
            text = self._with_newlines(text)
        if self._total > MAX_REPLY:
            raise refuse(MAX_REPLY, "bytes")
        lines = text.split(b"\n")
        self._check_length(text, lines)
        del text
        self._line += lines.pop()
        found: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._size += len(line)
                if self._size > MAX_EVENT or len(data) > MAX_LINES:
                    self._refuse_event()
            elif line:
                self._put_aside(line)
            elif data:
                found.append(data[0] if len(data) == 1 else b"\n".join(data))
                check_values(found[-1])
                data.clear()
                self._size = 0
        return found

    def _with_newlines(self, text: bytes) -> bytes:
        if self._after_return and text.startswith(b"\n"):
            text = text[1:]
        self._after_return = text.endswith(b"\r")
        return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _put_aside(self, line: bytes) -> None:
        # a field with JSON in it is a damaged event
        if (line.startswith(_FIELDS) and b'"' not in line) or line in _NAMES:
            return
        self._stray += b"\n" + line
        if len(self._stray) > MAX_STRAY:
            raise refuse(MAX_STRAY, "bytes outside of events")

    def _check_length(self, text: bytes, lines: list[bytes]) -> None:
        if len(text) > MAX_EVENT and any(len(line) > MAX_EVENT for line in lines):
            raise refuse(MAX_EVENT, "bytes in one event")

    def _refuse_event(self) -> None:
        if len(self._data) > MAX_LINES:
            raise refuse(MAX_LINES, "lines in one event")
        raise refuse(MAX_EVENT, "bytes in one event")
