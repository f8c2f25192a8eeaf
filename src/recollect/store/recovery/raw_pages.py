"""Reads rows from a SQLite file whose structure is broken, one leaf page at a time.

A damaged page near the root of a table hides every page below it from SQLite. The rows are still
there. This reads the pages one by one, with the frames of the write-ahead log applied, and decodes
every table row it finds, following overflow pages. It trusts nothing: rows that cannot be decoded
are skipped, rows beyond the page's own count are read too, and the caller verifies hashes and
checksums.

The formats are those of https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

SqlValue: TypeAlias = int | float | str | bytes | None
RawRow: TypeAlias = tuple[int, list[SqlValue]]  # rowid, columns

# the type of a table's leaf, also with one bit flipped; the caller drops rows that are not ours
_LEAVES = {0x0D, *(0x0D ^ 1 << bit for bit in range(8))}
_MAX_PAYLOAD = 1 << 30
_WIDTHS = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0)  # by type: 1 to 6 are integers, 7 is a float


class _Cell(NamedTuple):
    """The position of a row on its leaf."""

    rowid: int
    length: int  # of the payload
    payload: int
    end: int


class RawPages:
    """The readable pages of a database as of its last commit."""

    def __init__(self, database: Path, journal: Path) -> None:
        self._data = database.read_bytes() if database.exists() else b""
        self.size = self._page_size()
        self._newer = _frames(journal, self.size)
        self.count = max(len(self._data) // self.size, max(self._newer, default=0))
        self._free = self._freelist()

    def page(self, number: int) -> bytes:
        if number in self._newer:
            return self._newer[number]
        return self._data[(number - 1) * self.size : number * self.size]

    def rows(self, *, free: bool = False) -> Iterator[RawRow]:
        """Every row of every table, in no particular order; or those left on free pages."""
        for number in range(1, self.count + 1):
            page = self.page(number)
            start = 100 if number == 1 else 0
            wanted = (number in self._free) == free
            if wanted and len(page) == self.size and page[start] in _LEAVES:
                yield from self._leaf(page, start)

    def _page_size(self) -> int:
        size = int.from_bytes(self._data[16:18], "big")
        size = 65_536 if size == 1 else size
        return size if size >= 512 and size & (size - 1) == 0 else 4_096

    def _freelist(self) -> set[int]:
        """Pages whose rows were deleted or moved; their rows are old if this list is intact."""
        free: set[int] = set()
        trunk = int.from_bytes(self.page(1)[32:36], "big")
        while 1 < trunk <= self.count and trunk not in free:
            free.add(trunk)
            page = self.page(trunk)
            count = min(int.from_bytes(page[4:8], "big"), self.size // 4 - 2)
            free.update(struct.unpack_from(f">{count}I", page, 8))
            trunk = int.from_bytes(page[:4], "big")
        return free

    def _leaf(self, page: bytes, start: int) -> Iterator[RawRow]:
        """The rows that a leaf counts, and those beyond its count whose bytes no other row has.

        A count that is too low hides rows, but after the start of the content every byte belongs
        to a row or is free. The rest of a deleted row is before that, in a free block, or
        overwritten by another row.
        """
        count = min(int.from_bytes(page[start + 3 : start + 5], "big"), self.size // 4)
        content = min(int.from_bytes(page[start + 5 : start + 7], "big") or 65_536, self.size)
        taken = _taken(page, start, content)
        for index in range(max(count, (content - start - 8) // 2)):
            at = start + 8 + 2 * index
            offset = int.from_bytes(page[at : at + 2], "big")
            try:
                cell = self._cell(page, offset)
                if index >= count and any(taken[offset : cell.end]):
                    continue
                taken[offset : cell.end] = bytes([1]) * (cell.end - offset)
                yield self._row(page, cell)
            except (IndexError, ValueError, struct.error):
                continue  # this row is damaged; its neighbours need not be

    def _cell(self, page: bytes, offset: int) -> _Cell:
        length, offset = _varint(page, offset)
        rowid, offset = _varint(page, offset)
        if not 0 < length < _MAX_PAYLOAD:
            raise ValueError("impossible payload length")
        local = self._local(length)
        return _Cell(rowid, length, offset, offset + local + (4 if local < length else 0))

    def _row(self, page: bytes, cell: _Cell) -> RawRow:
        rowid, length, start, end = cell
        local = self._local(length)
        payload = page[start : start + local]
        if local < length:
            follow = int.from_bytes(page[start + local : end], "big")
            payload += self._overflow(follow, length - local)
        if len(payload) != length:
            raise ValueError("payload is truncated")
        return rowid - (1 << 64) if rowid >> 63 else rowid, _record(payload)

    def _local(self, length: int) -> int:
        """How many bytes of a payload are on the leaf itself."""
        most = self.size - 35
        if length <= most:
            return length
        least = (self.size - 12) * 32 // 255 - 23
        some = least + (length - least) % (self.size - 4)
        return some if some <= most else least

    def _overflow(self, number: int, length: int) -> bytes:
        pieces: list[bytes] = []
        while length > 0 and 1 < number <= self.count:
            page = self.page(number)
            pieces.append(page[4 : 4 + min(length, self.size - 4)])
            length -= len(pieces[-1]) or length
            number = int.from_bytes(page[:4], "big")
        return b"".join(pieces)


def _taken(page: bytes, start: int, content: int) -> bytearray:
    """For each byte of the page: 1 if no row can be there (before the content, in a free block)."""
    taken = bytearray([1]) * content + bytearray(len(page) - content)
    block = int.from_bytes(page[start + 1 : start + 3], "big")
    while content <= block < len(page) - 3:
        following, size = struct.unpack_from(">2H", page, block)
        taken[block : block + size] = bytes([1]) * size
        block = following if following > block else 0
    return taken


def _frames(journal: Path, size: int) -> dict[int, bytes]:
    """The newest committed version of each page in the write-ahead log."""
    data = journal.read_bytes() if journal.exists() else b""
    salts, newest, open_pages = data[16:24], {}, {}
    for at in range(32, len(data) - size - 23, size + 24):
        if data[at + 8 : at + 16] != salts:
            continue
        open_pages[int.from_bytes(data[at : at + 4], "big")] = data[at + 24 : at + 24 + size]
        if int.from_bytes(data[at + 4 : at + 8], "big"):
            newest.update(open_pages)
            open_pages = {}
    return newest


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(9):
        byte = data[at + index]
        if index == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    raise ValueError("not a varint")


def _record(payload: bytes) -> list[SqlValue]:
    end, at = _varint(payload, 0)
    body, values = end, []
    while at < end:
        kind, at = _varint(payload, at)
        width = (kind - 12) // 2 if kind >= 12 else _WIDTHS[kind]
        data = payload[body : body + width]
        if len(data) != width:
            raise ValueError("record is truncated")
        values.append(_value(kind, data))
        body += width
    return values


def _value(kind: int, data: bytes) -> SqlValue:
    if kind >= 12:
        return data.decode("utf-8") if kind % 2 else data
    if 1 <= kind <= 6:
        return int.from_bytes(data, "big", signed=True)
    if kind == 7:
        return float(struct.unpack(">d", data)[0])
    return {8: 0, 9: 1}.get(kind)
