"""Builds a new store from the rows that a broken file still has.

Rows are recognized by their shape and verified by hash or checksum where they have one. A segment
whose row is gone is found again by its first entry: only one hash in the store can be its parent's.
A session whose row is gone gets a new one; its title comes from the log. An entry whose key was
damaged (one flipped bit makes it appear thousands of places away, or in a segment that does not
exist) moves back to the gap that its hash proves.
"""

from __future__ import annotations

import re
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import apsw

from recollect.entries import Body
from recollect.errors import Damaged
from recollect.store import row_encoding, session_rows
from recollect.store.ids import derived_id, now
from recollect.store.log_reader import EntryRow, LogReader, missing_entry_row
from recollect.store.open_file import open_database
from recollect.store.recovery.quarantine import quarantine_data
from recollect.store.recovery.raw_pages import RawPages, SqlValue
from recollect.store.search_index import mark_all_pending
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK
from recollect.store.wal_journal import journal_path

# By table: the shapes of its columns after the key (s text, i integer, n NULL, b bytes with their
# number). The hash of a missing entry is empty.
_SHAPES = {
    "dictionaries": re.compile(r"i b32 b\d+"),
    "entries": re.compile(r"b16 i b(16|0) b\d+"),
    "sessions": re.compile(r"b16 [in] s i [in] b8( s)?"),  # without an owner before format 3
    "lines": re.compile(r"i [in] i i b8"),
    "projects": re.compile(r"(b\d+|n) b\d+ b\d+ b\d+ b8"),
    "blobs": re.compile(r"b32 i b\d+"),
    "drafts": re.compile(r"b16 i [in] s i b\d+"),
    "quarantine": re.compile(r"s i s (b\d+|n)"),
}

_SESSION_FIELDS = 6  # of a session's row before format 3, its checksum last
_MISPLACED = 1 << 61  # above the keys of any segment


def rebuild_store(path: Path, fresh: Path, journal: Path | None = None) -> str:
    """Write a new store to `fresh`; returns a phrase that says what was saved."""
    found = collect_rows(RawPages(path, journal or journal_path(path)))
    with closing(open_database(fresh)) as db:
        db.pragma("foreign_keys", "off")  # in a broken file anything may be missing
        db.execute("BEGIN IMMEDIATE")
        for table, kept in found.items():
            for key, values in kept.items():
                insert_row(db, table, key, values)
        reader = LogReader(db)
        restore_misplaced_rows(reader)
        _restore_segments(reader)
        restore_missing_bases(db)
        _restore_sessions(reader)
        mark_all_pending(db)
        db.execute("COMMIT")
        tables = {"sessions": "sessions", "entries": "entries", "blobs": "contents"}
        counts = (f"{_count(db, table)} {name}" for table, name in tables.items())
        return ", ".join(counts)


def _count(db: apsw.Connection, table: str) -> int:
    [(number,)] = db.execute(f"SELECT count(*) FROM {table}")  # noqa: S608 - our own names
    return int(number)


def insert_row(db: apsw.Connection, table: str, key: int, values: list[SqlValue]) -> None:
    marks = ", ".join("?" * (len(values) + 1))
    insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608 - our own names
    db.execute(insert, (key, *values))


def is_store_file(path: Path) -> bool:
    """Whether a file that SQLite cannot read has rows that only recollect writes."""
    return any(
        _has_valid_checksum(_table_of(values), rowid, values)
        for rowid, values in RawPages(path, journal_path(path)).rows()
    )


def collect_rows(pages: RawPages) -> dict[str, dict[int, list[SqlValue]]]:
    """The readable rows, by table and key, as the current format has them."""
    found: dict[str, dict[int, list[SqlValue]]] = {t: {} for t in _SHAPES}
    for rowid, values in pages.rows():
        table = _table_of(values)
        if table is None:
            continue
        known = found[table].get(rowid)
        if table == "entries" and known is not None and known != values[1:]:
            # one of the two has a damaged key: both count as misplaced, and their hashes decide
            found[table][_MISPLACED | rowid] = found[table].pop(rowid)
            found[table][_MISPLACED | 1 << 60 | rowid] = values[1:]
        elif known is None or _has_valid_checksum(table, rowid, values):
            found[table][rowid] = values[1:]
    for rowid, values in pages.rows(free=True):
        # one flipped bit can mark pages as free that are not; old copies of a row have its key
        if table := _table_of(values):
            found[table].setdefault(rowid, values[1:])
    found["sessions"] = {key: _with_owner(row) for key, row in found["sessions"].items()}
    return found


def _with_owner(row: list[SqlValue]) -> list[SqlValue]:
    """A session's row of an older format gets an empty owner, and a checksum that covers it."""
    if len(row) > _SESSION_FIELDS:
        return row
    *fields, checksum = row
    if row_encoding.row_checksum(*fields) == checksum:
        checksum = row_encoding.row_checksum(*fields, "")
    return [*fields, checksum, ""]


def _table_of(values: list[SqlValue]) -> str | None:
    if not values or values[0] is not None:
        return None
    shape = " ".join(map(_column_shape, values[1:]))
    return next((table for table, known in _SHAPES.items() if known.fullmatch(shape)), None)


def _column_shape(value: SqlValue) -> str:
    if isinstance(value, bytes):
        return f"b{len(value)}"
    return {int: "i", str: "s", float: "f"}.get(type(value), "n")


def _has_valid_checksum(table: str | None, rowid: int, values: list[SqlValue]) -> bool:
    *fields, checksum = values[1:] or [None]
    if table == "lines":
        fields = [rowid, *fields[:3]]
    elif table == "sessions" and len(values) > _SESSION_FIELDS + 1:
        *fields, checksum, owner = values[1:]
        fields = [*fields, owner]
    elif table not in ("sessions", "projects"):
        return False
    return row_encoding.row_checksum(*fields) == checksum


def _restore_segments(reader: LogReader) -> None:
    db = reader.db
    orphaned = (
        f"SELECT DISTINCT key >> {SEGMENT_BITS} AS segment FROM entries"  # noqa: S608 - a constant
        " WHERE segment NOT IN (SELECT line FROM lines)"
    )
    for (segment,) in list(db.execute(orphaned)):
        base = _parent_of(reader, segment)
        owner = _owner(db, base) if base is not None else _unused_session(db, segment)
        depth = 0 if base is None else _depth(db, base)
        session_rows.insert_checksummed(db, "lines", segment, owner, base, depth)


def _parent_of(reader: LogReader, segment: int) -> int | None:
    """The entry whose hash is part of the hash of the segment's first entry."""
    first = "SELECT id, time, hash, body FROM entries WHERE key = ?"
    key = segment << SEGMENT_BITS | 1
    for raw_id, time, expected, stored in list(reader.db.execute(first, (key,))):
        try:
            json = reader.packer.unpack(stored)[0]
        except Damaged:
            return None
        for key, candidate in reader.db.execute("SELECT key, hash FROM entries"):
            if row_encoding.entry_hash(candidate, raw_id, time, json) == expected:
                return int(key)
    return None


def _owner(db: apsw.Connection, base: int) -> int:
    query = "SELECT session FROM lines WHERE line = ?"
    found = next(iter(db.execute(query, (base >> SEGMENT_BITS,))), None)
    return int(found[0]) if found else _unused_session(db, base >> SEGMENT_BITS)


def _depth(db: apsw.Connection, base: int) -> int:
    try:
        return session_rows.depth_of(db, base)
    except ValueError:
        return 0  # the segment below is gone as well; the repair counts again


def _unused_session(db: apsw.Connection, segment: int) -> int:
    """An unused session number, for an orphaned segment; `_restore_sessions` inserts its row."""
    known = "SELECT session FROM sessions UNION ALL SELECT session FROM lines"
    ((highest,),) = db.execute(f"SELECT coalesce(max(session), 0) FROM ({known})")  # noqa: S608
    return int(highest) + segment


def restore_missing_bases(db: apsw.Connection) -> None:
    """Insert a placeholder for each missing entry from which a segment continues."""
    lost = "SELECT DISTINCT base FROM lines WHERE base NOT IN (SELECT key FROM entries)"
    for (key,) in list(db.execute(lost)):
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", missing_entry_row(key))


def _restore_sessions(reader: LogReader) -> None:
    db = reader.db
    lost = "SELECT DISTINCT session FROM lines WHERE session NOT IN (SELECT session FROM sessions)"
    for (number,) in list(db.execute(lost)):
        title = session_rows.title_from(_bodies(reader, number))
        raw_id = bytes.fromhex(derived_id("recovered", str(number), str(now())))
        fields: tuple[Any, ...] = (raw_id, None, title or "recovered session", now(), None)
        db.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, *fields, row_encoding.row_checksum(*fields, ""), ""),
        )
    empty = "SELECT session FROM sessions WHERE session NOT IN (SELECT session FROM lines)"
    for (number,) in list(db.execute(empty)):
        session_rows.add_segment(db, number, None, 0)


def _bodies(reader: LogReader, session: int) -> list[Body]:
    """The readable bodies among the first of each of its segments."""
    query = (
        "SELECT body FROM lines JOIN entries ON key > line << ?1 AND key <= (line << ?1 | 20)"
        " WHERE session = ?2 ORDER BY key"
    )
    found = []
    for (stored,) in list(reader.db.execute(query, (SEGMENT_BITS, session))):
        with suppress(Damaged, LookupError, ValueError):
            found.append(reader.body(stored))
    return found


def restore_misplaced_rows(reader: LogReader) -> None:
    """Within a transaction: move each misplaced row to the gap that its hash proves, if there is
    one; quarantine those that are implausibly far from any other."""
    db = reader.db
    found: list[EntryRow] = list(db.execute("SELECT key, id, time, hash, body FROM entries"))
    hashes = {row[0]: row[3] for row in found}
    bases = dict(db.execute("SELECT line, base FROM lines"))
    later = (row for row in found if row[0] & SEGMENT_MASK > 1)
    first = (row for row in found if row[0] & SEGMENT_MASK == 1)
    misplaced = [row for row in later if row[0] - 1 not in hashes]
    misplaced += [row for row in first if row[0] >> SEGMENT_BITS not in bases]
    unsettled = {row[0] for row in misplaced}
    for row in misplaced:
        # a misplaced row proves no place: its successor waits until it is back in its own
        settled = {key: digest for key, digest in hashes.items() if key not in unsettled}
        gap = _find_gap(reader, row, settled, bases)
        key, raw_id, _, _, body = row
        if gap is not None:
            db.execute("UPDATE entries SET key = ? WHERE key = ?", (gap, key))
            hashes[gap] = hashes.pop(key)
            unsettled.discard(key)
        elif _is_far(key, hashes):
            reason = "its key was damaged and it follows no other entry"
            quarantine_data(db, describe_place(raw_id.hex(), key), reason, body)
            db.execute("DELETE FROM entries WHERE key = ?", (key,))
            hashes.pop(key)


def describe_place(entry: str, key: int) -> str:
    return f"entry {entry} (segment {key >> SEGMENT_BITS}, {key & SEGMENT_MASK})"


def _find_gap(
    reader: LogReader, row: EntryRow, hashes: dict[int, bytes], bases: dict[int, int | None]
) -> int | None:
    _, raw_id, time, expected, body = row
    try:
        json = reader.packer.unpack(body)[0]
    except Damaged:
        return None
    gaps = [(key + 1, previous) for key, previous in hashes.items()]
    for segment, base in bases.items():
        previous = row_encoding.ZERO_HASH if base is None else hashes.get(base, b"")
        gaps.append((segment << SEGMENT_BITS | 1, previous))
    for gap, previous in gaps:
        is_free = gap not in hashes
        if is_free and row_encoding.entry_hash(previous, raw_id, time, json) == expected:
            return gap
    return None


def _is_far(key: int, hashes: dict[int, bytes]) -> bool:
    below = [k for k in hashes if k < key and k >> SEGMENT_BITS == key >> SEGMENT_BITS]
    gap = key - max(below, default=key >> SEGMENT_BITS << SEGMENT_BITS)
    return gap > 10 * len(hashes) + 1_000
