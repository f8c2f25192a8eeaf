"""Reads paths back and checks every hash on the way.

Reading a window reads that window and one entry before it, whose hash the oldest one needs. What
does not verify is `Damaged`, named entry by entry; with `mark` the rest is handed out and a note
stands where the damaged entry was.
"""

from __future__ import annotations

import contextlib
import struct
from hashlib import blake2b
from typing import TypeAlias

import apsw

from recollect.entries import Body, Entry, Note, decode
from recollect.errors import BadInput, Damaged, UnknownBlob, UnknownEntry
from recollect.store.ids import derived_id
from recollect.store.row_encoding import (
    HASH_BYTES,
    ZERO_HASH,
    BodyPacker,
    content_address,
    restore_blobs,
    unpack_blob,
)
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

EntryRow: TypeAlias = tuple[int, bytes, int, bytes, bytes]  # key, id, time, hash, body

_RANGE = (
    "SELECT key, id, time, hash, body FROM entries WHERE key > ? AND key <= ?"
    " ORDER BY key DESC LIMIT ?"
)
QUARANTINED = "[this entry was damaged and is in quarantine: `recollect doctor` tells more]"
UNREADABLE = "[this entry is damaged: `recollect doctor` tells more]"
_NO_LIMIT = -1
_TIME = struct.Struct(">q")


def segment_bounds(line: int) -> tuple[int, int]:
    """The keys of a line lie above the first and up to the second."""
    return line << SEGMENT_BITS, line << SEGMENT_BITS | SEGMENT_MASK


def missing_entry_row(key: int) -> EntryRow:
    """The row that takes the place of an entry that is gone: no body, and no hash to check by."""
    return key, bytes.fromhex(derived_id("missing", str(key))), 0, b"", b""


def load_packer(db: apsw.Connection) -> BodyPacker:
    return BodyPacker(load_dictionaries(db), lambda number: load_dictionaries(db).get(number))


def load_dictionaries(db: apsw.Connection) -> dict[int, bytes]:
    """Each is kept twice: one good copy is enough."""
    good: dict[int, bytes] = {}
    for (copy,) in list(db.execute("SELECT copy FROM dictionaries")):
        query = "SELECT number, address, data FROM dictionaries WHERE copy = ?"
        with contextlib.suppress(apsw.CorruptError):
            found = list(db.execute(query, (copy,)))
            good |= {
                number: data for number, digest, data in found if content_address(data) == digest
            }
    return good


class LogReader:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.packer = load_packer(db)

    def path(
        self, head: int | None, *, last: int | None = None, since: int | None = None, mark: bool
    ) -> tuple[Entry, ...]:
        if head is None or last == 0:
            return ()
        rows, before = self._window(head, last, since)
        return self.verify(rows, before, mark=mark)

    def line(self, line: int, *, mark: bool) -> tuple[Entry, ...]:
        """Every entry written in a line, whether or not a path still leads there."""
        rows = list(self.db.execute(_RANGE, (*segment_bounds(line), _NO_LIMIT)))[::-1]
        return self.verify(rows, self._row(self.base(line)), mark=mark) if rows else ()

    def _window(
        self, head: int, last: int | None, since: int | None
    ) -> tuple[list[EntryRow], EntryRow | None]:
        """The rows asked for, oldest first, and the row before them."""
        wanted = _NO_LIMIT if last is None else last + 1
        rows: list[EntryRow] = []
        key: int | None = head
        while key is not None and (wanted < 0 or len(rows) < wanted):
            line = key >> SEGMENT_BITS
            floor = line << SEGMENT_BITS
            stop = since is not None and floor < since <= key
            if stop and since is not None:
                floor = since - 1
            room = wanted if wanted < 0 else wanted - len(rows)
            found = list(self.db.execute(_RANGE, (floor, key, room)))
            self._check_run(found, key, None if wanted >= 0 and len(found) == room else floor)
            rows += found
            if stop:
                break
            key = self.base(line)
        else:
            if since is not None:
                raise UnknownEntry(self.id_of(since))
        rows.reverse()
        if since is not None or (wanted > 0 and len(rows) == wanted):
            return rows[1:], rows[0]
        return rows, None

    def _check_run(self, rows: list[EntryRow], top: int, floor: int | None) -> None:
        """Rows of one line, newest first, must run from `top` down without a gap."""
        expected = top
        for row in rows:
            if row[0] != expected:
                break
            expected -= 1
        else:
            if floor is None or expected == floor:
                return
        raise Damaged(
            f"entry {expected & SEGMENT_MASK} of line {expected >> SEGMENT_BITS} is missing"
        )

    def base(self, line: int) -> int | None:
        query = "SELECT base FROM lines WHERE line = ?"
        found: list[tuple[int | None]] = list(self.db.execute(query, (line,)))
        if found:
            return found[0][0]
        raise Damaged(f"line {line} of the log is missing")

    def _row(self, key: int | None) -> EntryRow | None:
        if key is None:
            return None
        found: list[EntryRow] = list(self.db.execute(_RANGE, (key - 1, key, 1)))
        if found:
            return found[0]
        raise Damaged(f"entry {key & SEGMENT_MASK} of line {key >> SEGMENT_BITS} is missing")

    def id_of(self, key: int) -> str:
        row = self._row(key)
        assert row is not None
        return row[1].hex()

    def verify(
        self, rows: list[EntryRow], before: EntryRow | None, *, mark: bool
    ) -> tuple[Entry, ...]:
        """Rows of a path, oldest first, as entries; `before` is the row the first one follows.

        An empty hash is that of an entry which is gone: its successor is taken on trust.
        """
        parent = before[1].hex() if before else None
        previous = before[3] if before else ZERO_HASH
        unpack, pack_time, join = self.packer.unpack, _TIME.pack, b"".join
        entries: list[Entry] = []
        damaged: list[str] = []
        for _, raw_id, time, sealed, stored in rows:
            entry_id = raw_id.hex()
            body: Body
            try:
                json, moved = unpack(stored)
                data = join((previous, raw_id, pack_time(time), json))
                if blake2b(data, digest_size=HASH_BYTES).digest() == sealed or not previous:
                    body = decode(restore_blobs(json, self.blob) if moved else json)
                else:
                    body = self._stands_in(entry_id, stored, damaged)
            except (Damaged, UnknownBlob, BadInput, ValueError, struct.error):
                body = self._stands_in(entry_id, stored, damaged)
            entries.append(Entry(entry_id, parent, time, body))
            parent, previous = entry_id, sealed
        if damaged and not mark:
            few = ", ".join(damaged[:3]) + (" …" if len(damaged) > 3 else "")
            raise Damaged(f"{len(damaged)} of {len(rows)} entries are damaged ({few})", damaged)
        return tuple(entries)

    def _stands_in(self, entry_id: str, stored: bytes, damaged: list[str]) -> Note:
        """The note for an entry that cannot be read; one in quarantine is no news."""
        if not stored:
            return Note(text=QUARANTINED, level="error")
        damaged.append(entry_id)
        return Note(text=UNREADABLE, level="error")

    def blob(self, digest: bytes) -> bytes:
        for size, data in self.db.execute(
            "SELECT size, data FROM blobs WHERE address = ?", (digest,)
        ):
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
