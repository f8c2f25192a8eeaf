"""The SHA-256 of a request's body that grows at its end, at the cost of what is new.

The digest is that of the bytes as they are sent. Each settled element is hashed once; only a frame
that changed, which changes the beginning of the body, makes the hash start over.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

from recollect.codecs.wire_protocol import RequestFrame

DIGEST_LENGTH = 32  # hexadecimal digits: enough to tell any two bodies apart


class BodyHash:
    """Of one encoder: its frame, its settled elements, then the open ones."""

    def __init__(self) -> None:
        self._frame: RequestFrame | None = None
        self._hash = hashlib.sha256()
        self._begun = False  # whether an element stands before the next one
        self._new: list[bytes] = []  # settled since the last digest

    def settle(self, element: bytes) -> None:
        self._new.append(element)

    def digest(
        self, frame: RequestFrame, settled: Callable[[], Sequence[bytes]], tail: Iterable[bytes]
    ) -> str:
        """`settled` gives all settled elements, joined by commas, in chunks."""
        if frame is not self._frame:
            self._start_over(frame, settled())
        for element in self._new:
            self._add(element)
        self._new.clear()
        settled_hash, begun = self._hash.copy(), self._begun
        for element in tail:
            self._add(element)
        self._hash.update(frame.after)
        found = self._hash.hexdigest()[:DIGEST_LENGTH]
        self._hash, self._begun = settled_hash, begun
        return found

    def _start_over(self, frame: RequestFrame, settled: Sequence[bytes]) -> None:
        self._frame, self._begun, self._new = frame, frame.opened, []
        self._hash = hashlib.sha256(frame.before)
        chunks = [chunk for chunk in settled if chunk]
        if chunks:
            self._add(chunks[0])
        for chunk in chunks[1:]:
            self._hash.update(chunk)

    def _add(self, element: bytes) -> None:
        if self._begun:
            self._hash.update(b",")
        self._hash.update(element)
        self._begun = True
