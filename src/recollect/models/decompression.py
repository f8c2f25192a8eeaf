"""Unpacks a compressed response body in bounded pieces, so that a small body cannot fill memory.

We ask servers not to compress; some do nevertheless.
"""

from __future__ import annotations

import zlib

MAX_PIECE = 1_000_000  # bytes that come out at a time
_SUPPORTED = ("gzip", "x-gzip", "deflate")
_ZLIB_OR_GZIP, _BARE_DEFLATE = 47, -15  # as zlib numbers them


class UnsupportedEncoding(Exception):
    """Its text is the printable name of the encoding."""


class Inflater:
    """Raises `UnsupportedEncoding`, and `zlib.error` for a damaged body."""

    def __init__(self, encoding: str) -> None:
        if encoding not in _SUPPORTED:
            raise UnsupportedEncoding("".join(filter(str.isprintable, encoding[:40])))
        self._may_be_bare = encoding == "deflate"
        self._stream: zlib._Decompress | None = None
        self._packed = b""

    def feed(self, data: bytes) -> None:
        if self._stream is None:  # some servers omit zlib's header, whose first byte ends in 8
            bare = self._may_be_bare and data[0] & 15 != 8
            self._stream = zlib.decompressobj(_BARE_DEFLATE if bare else _ZLIB_OR_GZIP)
        self._packed += data

    def next_piece(self) -> bytes:
        """None left: more has to be fed."""
        if self._stream is None:
            return b""
        piece = self._stream.decompress(self._packed, MAX_PIECE)
        self._packed = self._stream.unconsumed_tail
        if not piece and self._stream.unused_data:
            raise zlib.error
        return piece

    def finish(self) -> None:
        """The body has ended."""
        if self._stream is not None and not self._stream.eof:
            raise zlib.error
