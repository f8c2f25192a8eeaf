"""Brings back what only a damaged journal holds.

When SQLite stops at a damaged frame it forgets all that follow, although most of them are whole.
The journal was put aside then (see `wal`). This reads the rows in its frames and puts those that
the store lacks where they stood; the mending that follows checks their hashes. A session that has
gone on meanwhile is not touched: what would have stood there goes to the quarantine.
"""

from __future__ import annotations

from pathlib import Path

from recollect.errors import Damaged
from recollect.store import rows
from recollect.store.checks import Finding
from recollect.store.ids import now
from recollect.store.pages import Pages, Value
from recollect.store.salvage import collect, find_bases
from recollect.store.schema import LINE_BITS, LINE_FULL
from recollect.store.strays import place_strays
from recollect.store.writing import Writer


def journals(path: Path) -> list[Path]:
    """Those that were put aside and not yet read."""
    return sorted(path.parent.glob(f"{path.name}-wal.damaged-*"))


def rescue(writer: Writer, path: Path, journal: Path) -> Finding:
    """Within a transaction of the caller's, who has switched foreign keys off meanwhile."""
    found = collect(Pages(path, journal))
    for table in ("dictionaries", "projects", "sessions", "lines"):
        for key, values in sorted(found[table].items()):
            _insert(writer, table, key, values)
    for key, (digest, size, data) in found["blobs"].items():
        if isinstance(data, bytes) and isinstance(size, int) and _whole(digest, size, data):
            _insert(writer, "blobs", key, [digest, size, data])
    told: dict[int, Value] = {key: values[0] for key, values in found["entries"].items()}
    saved = conflicts = 0
    for key, values in sorted(found["entries"].items()):
        if _known(writer, values[0]):
            continue
        if _belongs(writer, key, told):
            _insert(writer, "entries", key, values)
            writer.db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (key >> LINE_BITS,))
            saved += 1
        else:
            _set_aside(writer, key, values)
            conflicts += 1
    place_strays(writer)
    find_bases(writer.db)
    writer.forget()
    what = f"the damaged journal {journal.name}"
    more = f"; {conflicts} that fit nowhere any more are in the quarantine" if conflicts else ""
    return Finding(what=what, place="journal", repaired=f"{saved} entries came back{more}")


def _insert(writer: Writer, table: str, key: int, values: list[Value]) -> None:
    marks = ", ".join("?" * (len(values) + 1))
    insert = f"INSERT OR IGNORE INTO {table} VALUES ({marks})"  # noqa: S608 - our own names
    writer.db.execute(insert, (key, *values))


def _whole(digest: Value, size: int, data: bytes) -> bool:
    try:
        return rows.address(rows.unpack_blob(data, size)) == digest
    except Damaged:
        return False


def _known(writer: Writer, raw_id: Value) -> bool:
    return bool(list(writer.db.execute("SELECT 1 FROM entries WHERE id = ?", (raw_id,))))


def _belongs(writer: Writer, key: int, told: dict[int, Value]) -> bool:
    """Whether the place is free, and what stands before it is what the journal has there too: then
    the session has not gone on by itself. Whether the entry is whole is for the mending to say."""
    floor = key >> LINE_BITS << LINE_BITS
    if not list(writer.db.execute("SELECT 1 FROM lines WHERE line = ?", (key >> LINE_BITS,))):
        return False
    query = "SELECT key, id FROM entries WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1"
    for before, raw_id in writer.db.execute(query, (floor, floor | LINE_FULL)):
        return bool(key > before and told.get(before) == raw_id)
    return True


def _set_aside(writer: Writer, key: int, values: list[Value]) -> None:
    raw_id, _, _, body = values
    name = raw_id.hex() if isinstance(raw_id, bytes) else str(raw_id)
    place = f"entry {name} (line {key >> LINE_BITS}, {key & LINE_FULL})"
    writer.db.execute(
        "INSERT INTO quarantine(place, time, reason, data) VALUES (?, ?, ?, ?)",
        (place, now(), "from a damaged journal; the session has gone on without it", body),
    )
