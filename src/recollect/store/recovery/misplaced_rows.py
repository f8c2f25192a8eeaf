"""Puts rows back whose key was damaged: an entry's hash says after which other entry it belongs.

One flipped bit in a key makes an entry appear thousands of places further on, or in a line that
never was. Such a row does not follow its neighbour, and somewhere there is a hole that it fits.
"""

from __future__ import annotations

import apsw

from recollect.errors import Damaged
from recollect.store import row_encoding
from recollect.store.ids import now
from recollect.store.log_reader import EntryRow, LogReader
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK


def restore_misplaced_rows(reader: LogReader) -> None:
    """Within a transaction: move each stray to the hole that its hash names, if there is one; one
    that is implausibly far from anything goes to the quarantine."""
    db = reader.db
    found: list[EntryRow] = list(db.execute("SELECT key, id, time, hash, body FROM entries"))
    hashes = {row[0]: row[3] for row in found}
    strays = [row for row in found if row[0] & SEGMENT_MASK > 1 and row[0] - 1 not in hashes]
    lines = dict(db.execute("SELECT line, base FROM lines"))
    strays += [
        row for row in found if row[0] & SEGMENT_MASK == 1 and row[0] >> SEGMENT_BITS not in lines
    ]
    lost = {row[0] for row in strays}
    for stray in strays:
        # a stray says nothing about places: its successor waits until it is back in its own
        settled = {key: sealed for key, sealed in hashes.items() if key not in lost}
        hole = _hole(reader, stray, settled, lines)
        if hole is not None:
            db.execute("UPDATE entries SET key = ? WHERE key = ?", (hole, stray[0]))
            hashes[hole] = hashes.pop(stray[0])
            lost.discard(stray[0])
        elif _far(stray[0], hashes):
            _set_aside(db, stray)
            hashes.pop(stray[0])


def _hole(
    reader: LogReader, stray: EntryRow, hashes: dict[int, bytes], lines: dict[int, int | None]
) -> int | None:
    _, raw_id, time, sealed, body = stray
    try:
        json = reader.packer.unpack(body)[0]
    except Damaged:
        return None
    for key, previous in hashes.items():
        if (
            key + 1 not in hashes
            and row_encoding.entry_hash(previous, raw_id, time, json) == sealed
        ):
            return key + 1
    for line, base in lines.items():
        first = line << SEGMENT_BITS | 1
        previous = row_encoding.ZERO_HASH if base is None else hashes.get(base, b"")
        if first not in hashes and row_encoding.entry_hash(previous, raw_id, time, json) == sealed:
            return first
    return None


def _far(key: int, hashes: dict[int, bytes]) -> bool:
    below = [k for k in hashes if k < key and k >> SEGMENT_BITS == key >> SEGMENT_BITS]
    gap = key - max(below, default=key >> SEGMENT_BITS << SEGMENT_BITS)
    return gap > 10 * len(hashes) + 1_000


def _set_aside(db: apsw.Connection, stray: EntryRow) -> None:
    key, raw_id, _, _, body = stray
    place = f"entry {raw_id.hex()} (line {key >> SEGMENT_BITS}, {key & SEGMENT_MASK})"
    db.execute(
        "INSERT INTO quarantine(place, time, reason, data) VALUES (?, ?, ?, ?)",
        (place, now(), "its key was damaged and it follows no other entry", body),
    )
    db.execute("DELETE FROM entries WHERE key = ?", (key,))
