"""Server-sent events: bytes in, the data of complete events out.

Guarantees: any cutting of the bytes gives the same events; the cost is linear in the bytes, however
small the pieces; what waits for its end is bounded, and so is a whole stream. Only `data` is read:
the three providers repeat in it what they say in `event`, and `id` and `retry` serve a reconnection
that no provider offers.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.errors import BadReply

MAX_EVENT = 32_000_000  # bytes; a picture in one event is the largest that providers send
MAX_STREAM = 512_000_000
NO_EVENTS: tuple[bytes, ...] = ()


class Events:
    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of a line that has not ended
        self._held = 0  # bytes in them
        self._data: list[bytes] = []  # lines of an event that has not ended
        self._size = 0  # bytes in those
        self._total = 0
        self._skip_newline = False  # the last piece ended with a carriage return

    def feed(self, piece: bytes) -> Sequence[bytes]:
        """The data of every event that ended in this piece."""
        self._total += len(piece)
        if b"\n" not in piece and b"\r" not in piece:
            if piece:
                self._skip_newline = False
            self._pieces.append(piece)
            self._held += len(piece)
            if self._held + self._size > MAX_EVENT or self._total > MAX_STREAM:
                self._refuse()
            return NO_EVENTS
        return self._take(piece)

    def close(self) -> Sequence[bytes]:
        """What a server forgot to end with an empty line."""
        return self._take(b"\n\n")

    @property
    def beginning(self) -> bytes:
        """Of a line that has not ended: what came instead of events."""
        return b"".join(self._pieces)[:2_000]

    def _take(self, piece: bytes) -> list[bytes]:
        if self._skip_newline and piece.startswith(b"\n"):
            piece = piece[1:]
        self._skip_newline = piece.endswith(b"\r")
        if b"\r" in piece:
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        first, *rest = piece.split(b"\n")
        if not rest:
            self._pieces.append(first)
            self._held += len(first)
            return []
        self._pieces.append(first)
        lines = [b"".join(self._pieces), *rest[:-1]]
        self._pieces, self._held = [rest[-1]], len(rest[-1])
        if self._held > MAX_EVENT or self._total > MAX_STREAM:
            self._refuse()
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._size += len(line)
                if self._size > MAX_EVENT:
                    self._refuse()
            elif not line and data:
                found.append(data[0] if len(data) == 1 else b"\n".join(data))
                data.clear()
                self._size = 0
        return found

    def _refuse(self) -> None:
        what, limit = (
            ("stream", MAX_STREAM) if self._total > MAX_STREAM else ("single event", MAX_EVENT)
        )
        raise BadReply(f"a {what} of more than {limit:,} bytes")
