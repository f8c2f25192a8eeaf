"""A file that is imported, read piece by piece.

It is read as it was when it was first opened: what a writer adds meanwhile is for the next time. It
is opened again for each pass, because a session may come with thousands of files; a file that was
replaced or shortened between two passes is refused.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from recollect.errors import CannotImport

CHUNK_BYTES = 1024 * 1024
_READ_ONLY = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class SourceFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity: tuple[int, int] | None = None
        with self._open() as (_, found):
            self._identity, self.size = (found.st_dev, found.st_ino), found.st_size

    def read(self, start: int, count: int) -> bytes:
        with self._open() as (file, _):
            file.seek(start)
            wanted = max(0, min(count, self.size - start))
            return self._whole(file.read(wanted), wanted)

    def chunks(self, start: int = 0, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The bytes from `start` on, in pieces of one size; the last may be shorter."""
        with self._open() as (file, _):
            file.seek(start)
            for at in range(start, self.size, size):
                wanted = min(size, self.size - at)
                yield self._whole(file.read(wanted), wanted)

    def lines(self, limit: int) -> Iterator[tuple[int, int, bytes | int]]:
        """Each line with its number and where it begins; the length of one that is longer than
        `limit`."""
        number, at, parts, length = 1, 0, list[bytes](), 0
        for chunk in self.chunks():
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                total = length + len(piece)
                line = piece if not parts else b"".join((*parts, piece))
                yield number, at, line if total <= limit else total
                number, at, parts, length = number + 1, at + total + 1, [], 0
            length += len(rest)
            if length <= limit:
                parts.append(rest)
            else:
                parts.clear()
        if length:
            yield number, at, b"".join(parts) if length <= limit else length

    def digest(self) -> str:
        hashed = hashlib.blake2b(digest_size=32)
        for chunk in self.chunks():
            hashed.update(chunk)
        return hashed.hexdigest()

    @contextmanager
    def _open(self) -> Iterator[tuple[BinaryIO, os.stat_result]]:
        try:
            # a pipe without a writer would block: it is opened at once, looked at, and refused
            with open(os.open(self.path, _READ_ONLY), "rb") as file:  # noqa: PTH123 - a descriptor
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    raise CannotImport(str(self.path), "it is not a regular file")
                if self._identity not in (None, (found.st_dev, found.st_ino)):
                    raise self.changed()
                yield file, found
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            if isinstance(error, CannotImport):
                raise
            why = error.strerror if isinstance(error, OSError) else error
            raise CannotImport(str(self.path), f"it cannot be read ({why or error})") from error

    def _whole(self, data: bytes, expected: int) -> bytes:
        if len(data) < expected:
            raise self.changed()
        return data

    def changed(self) -> CannotImport:
        return CannotImport(str(self.path), "it was changed while it was read; import it again")


def read_start(path: Path, size: int) -> bytes:
    """The first bytes of a file."""
    return SourceFile(path).read(0, size)


def read_small_file(path: Path, limit: int) -> bytes:
    """A whole file that is not a session's."""
    file = SourceFile(path)
    if file.size > limit:
        raise CannotImport(str(path), f"it has {file.size:,} bytes, the limit is {limit:,}")
    return file.read(0, file.size)
