"""Brings back what only a damaged journal holds.

When SQLite stops at a damaged frame it forgets all that follow, although most of them are whole.
The journal was put aside then (see `wal`). This reads the rows in its frames and puts those that
the store lacks where they stood; the mending that follows checks their hashes. A session that has
gone on meanwhile is not touched: what would have stood there goes to the quarantine.
"""

from __future__ import annotations

from pathlib import Path

from recollect.errors import Damaged
from recollect.store import row_encoding
from recollect.store.ids import now
from recollect.store.log_writer import LogWriter
from recollect.store.recovery.integrity_checks import Finding
from recollect.store.recovery.misplaced_rows import restore_misplaced_rows
from recollect.store.recovery.raw_pages import RawPages, SqlValue
from recollect.store.recovery.salvage import collect_rows, restore_missing_bases
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK


def damaged_journals(path: Path) -> list[Path]:
    """Those that were put aside and not yet read."""
    return sorted(path.parent.glob(f"{path.name}-wal.damaged-*"))


def rescue_journal(writer: LogWriter, path: Path, journal: Path) -> Finding:
    """Within a transaction of the caller's, who has switched foreign keys off meanwhile."""
    found = collect_rows(RawPages(path, journal))
    for table in ("dictionaries", "projects", "sessions", "lines"):
        for key, values in sorted(found[table].items()):
            _insert(writer, table, key, values)
    for key, (digest, size, data) in found["blobs"].items():
        if isinstance(data, bytes) and isinstance(size, int) and _whole(digest, size, data):
            _insert(writer, "blobs", key, [digest, size, data])
    told: dict[int, SqlValue] = {key: values[0] for key, values in found["entries"].items()}
    saved = conflicts = 0
    for key, values in sorted(found["entries"].items()):
        if _known(writer, values[0]):
            continue
        if _belongs(writer, key, told):
            _insert(writer, "entries", key, values)
            writer.db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (key >> SEGMENT_BITS,))
            saved += 1
        else:
            _set_aside(writer, key, values)
            conflicts += 1
    restore_misplaced_rows(writer)
    restore_missing_bases(writer.db)
    writer.forget()
    what = f"the damaged journal {journal.name}"
    more = f"; {conflicts} that fit nowhere any more are in the quarantine" if conflicts else ""
    return Finding(what=what, place="journal", repaired=f"{saved} entries came back{more}")


def _insert(writer: LogWriter, table: str, key: int, values: list[SqlValue]) -> None:
    marks = ", ".join("?" * (len(values) + 1))
    insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608 - our own names
    writer.db.execute(insert, (key, *values))


def _whole(digest: SqlValue, size: int, data: bytes) -> bool:
    try:
        return row_encoding.content_address(row_encoding.unpack_blob(data, size)) == digest
    except Damaged:
        return False


def _known(writer: LogWriter, raw_id: SqlValue) -> bool:
    return bool(list(writer.db.execute("SELECT 1 FROM entries WHERE id = ?", (raw_id,))))


def _belongs(writer: LogWriter, key: int, told: dict[int, SqlValue]) -> bool:
    """Whether the place is free, and what stands before it is what the journal has there too: then
    the session has not gone on by itself. Whether the entry is whole is for the mending to say."""
    floor = key >> SEGMENT_BITS << SEGMENT_BITS
    if not list(writer.db.execute("SELECT 1 FROM lines WHERE line = ?", (key >> SEGMENT_BITS,))):
        return False
    query = "SELECT key, id FROM entries WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1"
    for before, raw_id in writer.db.execute(query, (floor, floor | SEGMENT_MASK)):
        return bool(key > before and told.get(before) == raw_id)
    return True


def _set_aside(writer: LogWriter, key: int, values: list[SqlValue]) -> None:
    raw_id, _, _, body = values
    name = raw_id.hex() if isinstance(raw_id, bytes) else str(raw_id)
    place = f"entry {name} (line {key >> SEGMENT_BITS}, {key & SEGMENT_MASK})"
    writer.db.execute(
        "INSERT INTO quarantine(place, time, reason, data) VALUES (?, ?, ?, ?)",
        (place, now(), "from a damaged journal; the session has gone on without it", body),
    )
