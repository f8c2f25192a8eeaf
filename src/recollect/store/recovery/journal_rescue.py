"""Restores entries that only a damaged journal has.

When SQLite stops at a damaged frame it drops all the following ones, although most are intact. The
journal was copied then (see `wal_journal`). This reads the rows in its frames and inserts those
that the store lacks; the repair that follows verifies their hashes. A session that has grown in the
meantime is not touched: entries that would have stood there go to quarantine.
"""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

from recollect.errors import Damaged
from recollect.store import row_encoding
from recollect.store.log_reader import segment_bounds
from recollect.store.log_writer import LogWriter
from recollect.store.open_file import connect_to_store
from recollect.store.recovery.integrity_checks import Finding
from recollect.store.recovery.quarantine import quarantine_data, repair_rows
from recollect.store.recovery.raw_pages import RawPages, SqlValue
from recollect.store.recovery.salvage import (
    collect_rows,
    describe_place,
    insert_row,
    rebuild_store,
    restore_misplaced_rows,
    restore_missing_bases,
)
from recollect.store.sql_schema import SEGMENT_BITS


def damaged_journals(path: Path) -> list[Path]:
    """The copies that have not been read yet."""
    return sorted(path.parent.glob(f"{path.name}-wal.damaged-*"))


def orphaned_journals(path: Path) -> list[Path]:
    """Journals of other databases that were not applied, and have not been read yet."""
    found = path.parent.glob(f"{path.name}-wal.orphaned-*")
    return sorted(aside for aside in found if aside.suffix != ".shm")


def rescue_orphan(path: Path, journal: Path) -> Finding:
    """Save what a journal of another database holds to a store of its own: its rows may have the
    numbers of other sessions here."""
    what, number = f"the journal {journal.name} of another database", journal.name.split("-")[-1]
    saved = path.with_name(f"{path.name}.saved-{number}")
    saved.unlink(missing_ok=True)
    counts = rebuild_store(path.with_name(f".{path.name}.none"), saved, journal)
    with closing(connect_to_store(saved)) as db:  # a journal has no page that it did not change
        repair_rows(LogWriter(db), lambda _: None)
    copy = f"recollect store copy {shlex.quote(str(saved))} {shlex.quote(str(path))}"
    then = f"`{copy}` adds them to this store"
    return Finding(what=what, place="journal", repaired=f"{counts} saved as {saved.name}; {then}")


def rescue_journal(writer: LogWriter, path: Path, journal: Path) -> Finding:
    """Within a transaction of the caller, who has switched foreign keys off."""
    db = writer.db
    found = collect_rows(RawPages(path, journal))
    for table in ("dictionaries", "projects", "sessions", "lines"):
        for key, values in sorted(found[table].items()):
            insert_row(db, table, key, values)
    for key, (digest, size, data) in found["blobs"].items():
        if isinstance(data, bytes) and isinstance(size, int) and _is_intact(digest, size, data):
            insert_row(db, "blobs", key, [digest, size, data])
    ids: dict[int, SqlValue] = {key: values[0] for key, values in found["entries"].items()}
    saved = conflicts = 0
    for key, values in sorted(found["entries"].items()):
        if list(db.execute("SELECT 1 FROM entries WHERE id = ?", (values[0],))):
            continue
        if _continues_segment(writer, key, ids):
            insert_row(db, "entries", key, values)
            db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (key >> SEGMENT_BITS,))
            saved += 1
        else:
            raw_id, _, _, body = values
            entry = raw_id.hex() if isinstance(raw_id, bytes) else str(raw_id)
            reason = "from a damaged journal; the session has grown without it"
            quarantine_data(db, describe_place(entry, key), reason, body)
            conflicts += 1
    restore_misplaced_rows(writer)
    restore_missing_bases(db)
    writer.clear_caches()
    what = f"the damaged journal {journal.name}"
    more = f"; {conflicts} that no longer fit anywhere are in quarantine" if conflicts else ""
    return Finding(what=what, place="journal", repaired=f"{saved} entries restored{more}")


def _is_intact(digest: SqlValue, size: int, data: bytes) -> bool:
    try:
        return row_encoding.content_address(row_encoding.unpack_blob(data, size)) == digest
    except Damaged:
        return False


def _continues_segment(writer: LogWriter, key: int, ids: dict[int, SqlValue]) -> bool:
    """Whether the key is free and the entry before it is the same as in the journal, so that the
    session has not grown by itself. The repair verifies whether the entry is intact."""
    segment = key >> SEGMENT_BITS
    if not list(writer.db.execute("SELECT 1 FROM lines WHERE line = ?", (segment,))):
        return False
    query = "SELECT key, id FROM entries WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1"
    for before, raw_id in writer.db.execute(query, segment_bounds(segment)):
        return bool(key > before and ids.get(before) == raw_id)
    return True
