"""Brings back what only a damaged journal holds.

When SQLite stops at a damaged frame it forgets all that follow, although most of them are whole.
The journal was put aside then (see `wal`). This reads the rows in its frames and appends those that
the store lacks and that prove themselves: an entry by the hash chain, a stored content by its
address. A place where the session has gone on meanwhile is not touched; what would have stood there
goes to the quarantine.
"""

from __future__ import annotations

from pathlib import Path

from recollect.errors import Damaged
from recollect.store import rows
from recollect.store.checks import Finding
from recollect.store.ids import now
from recollect.store.pages import Pages, Value
from recollect.store.reading import Row
from recollect.store.salvage import collect
from recollect.store.schema import LINE_BITS, LINE_FULL
from recollect.store.writing import Writer


def journals(path: Path) -> list[Path]:
    """Those that were put aside and not yet read."""
    return sorted(path.parent.glob(f"{path.name}-wal.damaged-*"))


def rescue(writer: Writer, path: Path, journal: Path) -> Finding:
    """Within a transaction of the caller's."""
    found = collect(Pages(path, journal))
    for table in ("dictionaries", "projects", "sessions", "lines"):
        for key, values in sorted(found[table].items()):
            _insert(writer, table, key, values)
    for key, (digest, size, data) in found["blobs"].items():
        if isinstance(data, bytes) and isinstance(size, int) and _whole(digest, size, data):
            _insert(writer, "blobs", key, [digest, size, data])
    saved = conflicts = 0
    for key, values in sorted(found["entries"].items()):
        raw_id, time, sealed, body = values
        row: Row = (key, raw_id, time, sealed, body)  # type: ignore[assignment]
        if _known(writer, raw_id):
            continue
        if _follows(writer, row):
            _insert(writer, "entries", key, values)
            writer.db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (key >> LINE_BITS,))
            saved += 1
        else:
            _set_aside(writer, row)
            conflicts += 1
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


def _follows(writer: Writer, row: Row) -> bool:
    """Whether the entry is the next of its line, and its hash says so."""
    key, raw_id, time, sealed, body = row
    if list(writer.db.execute("SELECT 1 FROM entries WHERE key = ?", (key,))):
        return False
    before: int | None = key - 1
    if key & LINE_FULL == 1:
        query = "SELECT base FROM lines WHERE line = ?"
        found = list(writer.db.execute(query, (key >> LINE_BITS,)))
        if not found:
            return False
        before = found[0][0]
    previous = rows.ZERO_HASH
    if before is not None:
        hashes = list(writer.db.execute("SELECT hash FROM entries WHERE key = ?", (before,)))
        if not hashes:
            return False
        previous = hashes[0][0]
    try:
        return rows.seal(previous, raw_id, time, writer.packer.unpack(body)[0]) == sealed
    except Damaged:
        return False


def _set_aside(writer: Writer, row: Row) -> None:
    key, raw_id, _, _, body = row
    place = f"entry {raw_id.hex()} (line {key >> LINE_BITS}, {key & LINE_FULL})"
    writer.db.execute(
        "INSERT INTO quarantine(place, time, reason, data) VALUES (?, ?, ?, ?)",
        (place, now(), "from a damaged journal; its place is taken or its parent is gone", body),
    )
