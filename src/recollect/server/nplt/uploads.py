"""Files that a client sends before a message: bounded, held in memory, named and never placed.

A name is the last part of what the client gave, without control characters. Nothing is written to
a disk: the files become parts of the next message.
"""

from __future__ import annotations

import msgspec

from recollect.errors import BadInput, ServerBusy
from recollect.server.nplt.nplt_limits import NpltLimits
from recollect.text import clean, format_size

MAX_NAME = 200  # characters


class UploadedFile(msgspec.Struct, frozen=True):
    name: str
    data: bytes


class UploadBudget:
    """The bytes that the uploads of all connections hold, or will hold when they are complete."""

    def __init__(self, limit: int) -> None:
        self.limit, self.used = limit, 0


class Uploads:
    """The uploads of one connection, one after the other."""

    def __init__(self, limits: NpltLimits, budget: UploadBudget) -> None:
        self._limits, self._budget = limits, budget
        self._complete: list[UploadedFile] = []
        self._name, self._size, self._reserved = "", 0, 0
        self._data: bytearray | None = None

    def begin(self, filename: str, size: int) -> UploadedFile | None:
        """Expect a file of this size; one of no bytes is complete at once."""
        name, limits = file_name(filename), self._limits
        if not 0 <= size <= limits.upload_bytes:
            most = format_size(limits.upload_bytes)
            raise BadInput(f"{name} has {size:,} bytes; a file has 0 bytes to {most}")
        if len(self._complete) >= limits.uploads:
            raise BadInput(f"{limits.uploads} files wait already; send the message first")
        if self._reserved + size > limits.uploads_bytes:
            most = format_size(limits.uploads_bytes)
            raise BadInput(f"the files of one message have at most {most}; send the message first")
        if self._budget.used + size > self._budget.limit:
            raise ServerBusy("the server holds too many uploads", "try again in a moment")
        self._reserve(size)
        self._name, self._size, self._data = name, size, bytearray()
        return self._finish() if size == 0 else None

    def add(self, data: bytes) -> UploadedFile | None:
        """More bytes; the file, when these complete it."""
        if self._data is None:
            raise BadInput("no file was announced; send FILE_METADATA first")
        if len(self._data) + len(data) > self._size:
            name, size = self._name, self._size
            got = len(self._data) + len(data)
            self._drop()
            raise BadInput(f"{name} has {got:,} bytes or more, not {size:,}; it was dropped")
        self._data += data
        return self._finish() if len(self._data) == self._size else None

    def take(self) -> tuple[UploadedFile, ...]:
        """The files for a message; `release` them when they are in it."""
        taken, self._complete = tuple(self._complete), []
        return taken

    def release(self, files: tuple[UploadedFile, ...]) -> None:
        self._reserve(-sum(len(file.data) for file in files))

    def close(self) -> None:
        self._drop()
        self._complete.clear()
        self._reserve(-self._reserved)

    def _finish(self) -> UploadedFile:
        assert self._data is not None
        file = UploadedFile(self._name, bytes(self._data))
        self._data = None
        self._complete.append(file)
        return file

    def refuse_incomplete(self, then: str) -> None:
        """Drop a file whose end is missing, and raise."""
        if self._data is not None:
            name, size, got = self._name, self._size, len(self._data)
            self._drop()
            raise BadInput(
                f"{name} was dropped: {got:,} of {size:,} bytes came, then {then}; send it again"
            )

    def _drop(self) -> None:
        if self._data is not None:
            self._data = None
            self._reserve(-self._size)

    def _reserve(self, size: int) -> None:
        self._reserved += size
        self._budget.used += size


def file_name(given: str) -> str:
    """The name in what a client calls a file's name: no folder, no control characters."""
    name = clean(given.replace("\\", "/").rstrip("/").rpartition("/")[2])
    name = " ".join(name.split())[:MAX_NAME]
    return name if name.strip(".") else "file"
