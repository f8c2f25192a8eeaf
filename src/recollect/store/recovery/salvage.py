"""Builds a new store from whatever rows a broken file still holds.

Rows are recognised by their shape and proven by hashes and seals where they have them. A line whose
row is gone is found again through its first entry: only one hash in the store can be its parent's.
A session whose row is gone gets a new one; its title comes from the log.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw

from recollect.entries import Body
from recollect.errors import Damaged
from recollect.store import row_encoding, session_rows
from recollect.store.ids import derived_id, now
from recollect.store.log_reader import LogReader, missing_entry_row, segment_bounds
from recollect.store.open_file import open_database
from recollect.store.recovery.misplaced_rows import restore_misplaced_rows
from recollect.store.recovery.raw_pages import RawPages, SqlValue
from recollect.store.sql_schema import SEGMENT_BITS
from recollect.store.wal_journal import journal_path

# By table: the types of its columns after the key (s text, i integer, b bytes, ? or NULL), and the
# lengths that its byte columns must have; below zero: or nothing, as in a lost entry's stand-in.
_SHAPES: dict[str, tuple[str, tuple[int | None, ...]]] = {
    "dictionaries": ("i b b", (32, None)),
    "entries": ("b i b b", (16, -16, None)),
    "sessions": ("b i? s i i? b", (16, 8)),
    "lines": ("i i? i i b", (8,)),
    "projects": ("b? b b b b", (None, None, None, None, 8)),
    "blobs": ("b i b", (32, None)),
    "drafts": ("b i i? s i b", (16, None)),
    "quarantine": ("s i s b?", (None,)),
}


_STRAYS = 1 << 61  # above any line's keys


def rebuild_store(path: Path, fresh: Path) -> str:
    """Write a new store to `fresh`; a sentence on what could be saved."""
    found = collect_rows(RawPages(path, journal_path(path)))
    db = open_database(fresh)
    try:
        db.pragma("foreign_keys", "off")  # in a broken file anything may be missing
        db.execute("BEGIN IMMEDIATE")
        for table, kept in found.items():
            for key, values in kept.items():
                marks = ", ".join("?" * (len(values) + 1))
                insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608
                db.execute(insert, (key, *values))
        reader = LogReader(db)
        restore_misplaced_rows(reader)
        _find_lines(reader)
        restore_missing_bases(db)
        _find_sessions(reader)
        db.execute("UPDATE lines SET indexed = 0")
        db.execute("INSERT OR IGNORE INTO pending SELECT line FROM lines")
        db.execute("COMMIT")
    finally:
        db.close()
    counts = (f"{len(found[t])} {t}" for t in ("sessions", "entries", "blobs"))
    return ", ".join(counts).replace("blobs", "contents")


def is_store_file(path: Path) -> bool:
    """Whether a file that SQLite cannot read holds rows that only we write."""
    for rowid, values in RawPages(path, journal_path(path)).rows():
        table = _table(values)
        if table in ("sessions", "lines", "projects") and _proven(table, rowid, values):
            return True
    return False


def collect_rows(pages: RawPages) -> dict[str, dict[int, list[SqlValue]]]:
    """Rows by table and key, as far as the pages can be read."""
    found: dict[str, dict[int, list[SqlValue]]] = {t: {} for t in _SHAPES}
    for rowid, values in pages.rows():
        table = _table(values)
        if table is None:
            continue
        known = found[table].get(rowid)
        if table == "entries" and known is not None and known != values[1:]:
            # one of the two has a damaged key: both become strays, and their hashes decide
            found[table][_STRAYS | rowid] = found[table].pop(rowid)
            found[table][_STRAYS | 1 << 60 | rowid] = values[1:]
        elif known is None or _proven(table, rowid, values):
            found[table][rowid] = values[1:]
    for rowid, values in pages.rows(free=True):
        # one bit can call pages free that are not; old copies of a row are told by its key
        if table := _table(values):
            found[table].setdefault(rowid, values[1:])
    return found


def _table(values: list[SqlValue]) -> str | None:
    if not values or values[0] is not None:
        return None
    for table, (shape, lengths) in _SHAPES.items():
        if _fits(values[1:], shape.split(), lengths):
            return table
    return None


def _fits(values: list[SqlValue], shape: list[str], lengths: tuple[int | None, ...]) -> bool:
    if len(values) != len(shape):
        return False
    wanted = iter(lengths)
    for value, kind in zip(values, shape, strict=True):
        length = next(wanted) if kind[0] == "b" else None
        if value is None and kind.endswith("?"):
            continue
        if not isinstance(value, {"b": bytes, "i": int, "s": str}[kind[0]]):
            return False
        if length and isinstance(value, bytes):
            fits = len(value) == abs(length) or (length < 0 and not value)
            if not fits:
                return False
    return True


def _proven(table: str, rowid: int, values: list[SqlValue]) -> bool:
    """Of two versions of a row, the one whose seal fits is right."""
    *fields, seal = values[1:]
    if table == "lines":
        fields = [rowid, *fields[:3]]
    elif table not in ("sessions", "projects"):
        return False
    return row_encoding.row_checksum(*fields) == seal


def _find_lines(reader: LogReader) -> None:
    db = reader.db
    homeless = list(
        db.execute(
            "SELECT DISTINCT key >> ? FROM entries WHERE key >> ? NOT IN (SELECT line FROM lines)",
            (SEGMENT_BITS, SEGMENT_BITS),
        )
    )
    for (line,) in homeless:
        base = _parent_of(reader, line)
        owner = _owner(db, base) if base is not None else _lost_session(db, line)
        depth = 0 if base is None else _depth(db, base)
        sealed = row_encoding.row_checksum(line, owner, base, depth)
        db.execute(
            "INSERT INTO lines(line, session, base, depth, seal) VALUES (?, ?, ?, ?, ?)",
            (line, owner, base, depth, sealed),
        )


def _parent_of(reader: LogReader, line: int) -> int | None:
    """The entry whose hash the line's first entry was sealed with."""
    floor, _ = segment_bounds(line)
    first = "SELECT id, time, hash, body FROM entries WHERE key = ?"
    for raw_id, time, sealed, stored in list(reader.db.execute(first, (floor + 1,))):
        try:
            json = reader.packer.unpack(stored)[0]
        except Damaged:
            return None
        for key, candidate in reader.db.execute("SELECT key, hash FROM entries"):
            if row_encoding.entry_hash(candidate, raw_id, time, json) == sealed:
                return int(key)
    return None


def _owner(db: apsw.Connection, base: int) -> int:
    query = "SELECT session FROM lines WHERE line = ?"
    found = next(iter(db.execute(query, (base >> SEGMENT_BITS,))), None)
    return int(found[0]) if found else _lost_session(db, base >> SEGMENT_BITS)


def _depth(db: apsw.Connection, base: int) -> int:
    try:
        return session_rows.depth_of(db, base)
    except ValueError:
        return 0  # the line below is gone as well; mending counts again


def _lost_session(db: apsw.Connection, line: int) -> int:
    """A number no session has, for a line that belongs to none; `_find_sessions` makes it."""
    ((highest,),) = db.execute(
        "SELECT max(coalesce((SELECT max(session) FROM sessions), 0),"
        " coalesce((SELECT max(session) FROM lines), 0))"
    )
    return int(highest) + line


def restore_missing_bases(db: apsw.Connection) -> None:
    """A stand-in for an entry that other lines grow from and that is gone."""
    lost = "SELECT DISTINCT base FROM lines WHERE base NOT IN (SELECT key FROM entries)"
    for (key,) in list(db.execute(lost)):
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", missing_entry_row(key))


def _find_sessions(reader: LogReader) -> None:
    db = reader.db
    lost = "SELECT DISTINCT session FROM lines WHERE session NOT IN (SELECT session FROM sessions)"
    for (number,) in list(db.execute(lost)):
        title = (
            session_rows.title_from(_bodies(reader, number), titled=False) or "recovered session"
        )
        raw_id = bytes.fromhex(derived_id("recovered", str(number), str(now())))
        fields: tuple[Any, ...] = (raw_id, None, title, now(), None)
        db.execute(
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)",
            (number, *fields, row_encoding.row_checksum(*fields)),
        )
    empty = "SELECT session FROM sessions WHERE session NOT IN (SELECT session FROM lines)"
    for (number,) in list(db.execute(empty)):
        session_rows.add_segment(db, number, None, 0)


def _bodies(reader: LogReader, session: int) -> list[Body]:
    found = []
    for (line,) in list(reader.db.execute("SELECT line FROM lines WHERE session = ?", (session,))):
        query = "SELECT body FROM entries WHERE key > ? AND key <= ? ORDER BY key LIMIT 20"
        for (stored,) in list(reader.db.execute(query, segment_bounds(line))):
            try:
                found.append(reader.body(stored))
            except (Damaged, LookupError, ValueError):
                continue
    return found
