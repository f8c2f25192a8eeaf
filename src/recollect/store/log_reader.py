"""Reads paths of the log and verifies every hash on the way.

Reading a window reads that window and the entry before it, whose hash the oldest one needs. Entries
that do not verify raise `Damaged`, which lists them; with `mark` the other entries are returned and
a note takes the place of each damaged one.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from typing import NoReturn, TypeAlias

import apsw

from recollect.entries import Body, Entry, Note, Source, decode
from recollect.errors import BadInput, Damaged, UnknownBlob, UnknownEntry
from recollect.store.ids import derived_id
from recollect.store.row_encoding import (
    ZERO_HASH,
    BodyPacker,
    content_address,
    entry_hash,
    restore_blobs,
    unpack_blob,
)
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

EntryRow: TypeAlias = tuple[int, bytes, int, bytes, bytes]  # key, id, time, hash, body

_RANGE = (
    "SELECT key, id, time, hash, body FROM entries WHERE key > ? AND key <= ?"
    " ORDER BY key DESC LIMIT ?"
)
_RANGE_UP = _RANGE.replace("DESC", "ASC")
QUARANTINED = "[this entry was damaged and is in quarantine; `recollect doctor` shows more]"
UNREADABLE = "[this entry is damaged; `recollect doctor` shows more]"
_NO_LIMIT = -1


def segment_bounds(segment: int) -> tuple[int, int]:
    """The keys of a segment are above the first and up to the second."""
    return segment << SEGMENT_BITS, segment << SEGMENT_BITS | SEGMENT_MASK


def missing_entry_row(key: int) -> EntryRow:
    """A placeholder for an entry that is gone: no body, and no hash to verify it by."""
    return key, bytes.fromhex(derived_id("missing", str(key))), 0, b"", b""


def load_packer(db: apsw.Connection) -> BodyPacker:
    return BodyPacker(load_dictionaries(db), lambda number: load_dictionaries(db).get(number))


def load_dictionaries(db: apsw.Connection) -> dict[int, bytes]:
    """Each is stored twice; one good copy is enough."""
    good: dict[int, bytes] = {}
    for (copy,) in list(db.execute("SELECT copy FROM dictionaries")):
        query = "SELECT number, address, data FROM dictionaries WHERE copy = ?"
        with contextlib.suppress(apsw.CorruptError):
            ((number, digest, data),) = db.execute(query, (copy,))
            if content_address(data) == digest:
                good[number] = data
    return good


class LogReader:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.packer = load_packer(db)
        self.sources: dict[str, Source] = {}  # of imported sessions, as read so far

    def path(
        self, head: int | None, *, last: int | None = None, since: int | None = None, mark: bool
    ) -> tuple[Entry, ...]:
        if head is None or last == 0:
            return ()
        rows, before = self._window(head, last, since)
        return self.verify(rows, before, mark=mark)

    def page(self, head: int | None, start: int, limit: int) -> tuple[Entry, ...]:
        """The entries of the path to `head` from position `start` on, counted from 0 at its root.
        Segments know their depth, so only those with entries of the page are read."""
        first, stop = max(start - 1, 0), start + limit  # the hash of the one before is needed
        rows: list[EntryRow] = []
        key, reached = head, stop
        while key is not None and reached > first:
            segment = key >> SEGMENT_BITS
            base, reached = self._base_and_depth(segment)
            floor = (segment << SEGMENT_BITS) + max(first - reached, 0)
            top = min(key, (segment << SEGMENT_BITS) + stop - reached)
            if floor < top:
                found = list(self.db.execute(_RANGE, (floor, top, _NO_LIMIT)))
                _check_run(found, top, floor)
                rows += found
            key = base
        rows.reverse()
        before, rows = (rows[0], rows[1:]) if start and rows else (None, rows)
        return self.verify(rows, before, mark=False)

    def segment(self, segment: int, *, mark: bool) -> tuple[Entry, ...]:
        """Every entry written in a segment, whether or not a path still includes it."""
        rows = list(self.db.execute(_RANGE, (*segment_bounds(segment), _NO_LIMIT)))[::-1]
        return self.verify(rows, self._row(self.base(segment)), mark=mark) if rows else ()

    def tree_page(self, session: int, after: int, limit: int) -> tuple[Entry, ...]:
        """Entries that a session wrote after this key."""
        query = "SELECT line FROM lines WHERE session = ? AND line >= ? ORDER BY line"
        entries: tuple[Entry, ...] = ()
        for (segment,) in list(self.db.execute(query, (session, after >> SEGMENT_BITS))):
            floor, top = segment_bounds(segment)
            floor = max(floor, after)
            rows = list(self.db.execute(_RANGE_UP, (floor, top, limit - len(entries))))
            if rows:
                before = self._row(floor if floor & SEGMENT_MASK else self.base(segment))
                entries += self.verify(rows, before, mark=False)
            if len(entries) == limit:
                break
        return entries

    def _window(
        self, head: int, last: int | None, since: int | None
    ) -> tuple[list[EntryRow], EntryRow | None]:
        """The requested rows, oldest first, and the row before them."""
        wanted = _NO_LIMIT if last is None else last + 1
        rows: list[EntryRow] = []
        key: int | None = head
        while key is not None and (wanted < 0 or len(rows) < wanted):
            segment = key >> SEGMENT_BITS
            floor = segment << SEGMENT_BITS
            stop = since is not None and floor < since <= key
            if stop and since is not None:
                floor = since - 1
            room = wanted if wanted < 0 else wanted - len(rows)
            found = list(self.db.execute(_RANGE, (floor, key, room)))
            _check_run(found, key, None if wanted >= 0 and len(found) == room else floor)
            rows += found
            if stop:
                break
            key = self.base(segment)
        else:
            if since is not None:
                raise UnknownEntry(self.id_of(since))
        rows.reverse()
        if since is not None or (wanted > 0 and len(rows) == wanted):
            return rows[1:], rows[0]
        return rows, None

    def base(self, segment: int) -> int | None:
        return self._base_and_depth(segment)[0]

    def _base_and_depth(self, segment: int) -> tuple[int | None, int]:
        query = "SELECT base, depth FROM lines WHERE line = ?"
        found: list[tuple[int | None, int]] = list(self.db.execute(query, (segment,)))
        if found:
            return found[0]
        raise Damaged(f"segment {segment} of the log is missing")

    def _row(self, key: int | None) -> EntryRow | None:
        if key is None:
            return None
        found: list[EntryRow] = list(self.db.execute(_RANGE, (key - 1, key, 1)))
        return found[0] if found else _raise_missing(key)

    def id_of(self, key: int) -> str:
        row = self._row(key)
        assert row is not None
        return row[1].hex()

    def verify(
        self, rows: list[EntryRow], before: EntryRow | None, *, mark: bool
    ) -> tuple[Entry, ...]:
        """See `verify_rows`."""
        return verify_rows(rows, before, self.packer.unpack, self.blob, mark=mark)

    def blob(self, digest: bytes) -> bytes:
        query = "SELECT size, data FROM blobs WHERE address = ?"
        for size, data in self.db.execute(query, (digest,)):
            content = unpack_blob(data, size)
            if content_address(content) != digest:
                raise Damaged(f"content {digest.hex()} is not what was stored")
            return content
        raise UnknownBlob(digest.hex())

    def body(self, stored: bytes) -> Body:
        if not stored:
            return Note(text=QUARANTINED, level="error")
        json, moved = self.packer.unpack(stored)
        return decode(restore_blobs(json, self.blob) if moved else json)


def verify_rows(
    rows: list[EntryRow],
    before: EntryRow | None,
    unpack: Callable[[bytes], tuple[bytes, bool]],
    fetch: Callable[[bytes], bytes],
    *,
    mark: bool,
) -> tuple[Entry, ...]:
    """Rows of a path, oldest first, as entries; `before` is the row that the first one follows, and
    `fetch` returns the content of a blob.

    An empty hash belongs to an entry that is gone: its successor cannot be verified.
    """
    parent = before[1].hex() if before else None
    previous = before[3] if before else ZERO_HASH
    entries: list[Entry] = []
    damaged: list[str] = []
    for _, raw_id, time, expected, stored in rows:
        entry_id = raw_id.hex()
        body: Body
        try:
            json, moved = unpack(stored)
            if entry_hash(previous, raw_id, time, json) == expected or not previous:
                body = decode(restore_blobs(json, fetch) if moved else json)
            else:
                body = _placeholder(entry_id, stored, damaged)
        except (Damaged, UnknownBlob, BadInput, ValueError, struct.error):
            body = _placeholder(entry_id, stored, damaged)
        entries.append(Entry(entry_id, parent, time, body))
        parent, previous = entry_id, expected
    if damaged and not mark:
        few = ", ".join(damaged[:3]) + (" …" if len(damaged) > 3 else "")
        raise Damaged(f"{len(damaged)} of {len(rows)} entries are damaged ({few})", damaged)
    return tuple(entries)


def _check_run(rows: list[EntryRow], top: int, floor: int | None) -> None:
    """Rows of one segment, newest first, must run from `top` down without a gap."""
    expected = top
    for row in rows:
        if row[0] != expected:
            _raise_missing(expected)
        expected -= 1
    if floor is not None and expected != floor:
        _raise_missing(expected)


def _raise_missing(key: int) -> NoReturn:
    number, segment = key & SEGMENT_MASK, key >> SEGMENT_BITS
    raise Damaged(f"entry {number} of segment {segment} is missing")


def _placeholder(entry_id: str, stored: bytes, damaged: list[str]) -> Note:
    """The note for an entry that cannot be read; one in quarantine is not reported again."""
    if not stored:
        return Note(text=QUARANTINED, level="error")
    damaged.append(entry_id)
    return Note(text=UNREADABLE, level="error")
