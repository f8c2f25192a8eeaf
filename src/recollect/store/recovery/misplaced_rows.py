"""Moves entries whose key was damaged back to their place, which their hash proves.

One flipped bit in a key makes an entry appear thousands of places away, or in a segment that does
not exist. Such a row does not follow its neighbour, and somewhere there is a gap that it fits.
"""

from __future__ import annotations

from recollect.errors import Damaged
from recollect.store import row_encoding
from recollect.store.log_reader import EntryRow, LogReader
from recollect.store.recovery.quarantine import quarantine_data
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK


def restore_misplaced_rows(reader: LogReader) -> None:
    """Within a transaction: move each misplaced row to the gap that its hash proves, if there is
    one; quarantine those that are implausibly far from any other."""
    db = reader.db
    found: list[EntryRow] = list(db.execute("SELECT key, id, time, hash, body FROM entries"))
    hashes = {row[0]: row[3] for row in found}
    bases = dict(db.execute("SELECT line, base FROM lines"))
    misplaced = [row for row in found if row[0] & SEGMENT_MASK > 1 and row[0] - 1 not in hashes]
    misplaced += [
        row for row in found if row[0] & SEGMENT_MASK == 1 and row[0] >> SEGMENT_BITS not in bases
    ]
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
    for key, previous in hashes.items():
        follows = key + 1 not in hashes
        if follows and row_encoding.entry_hash(previous, raw_id, time, json) == expected:
            return key + 1
    for segment, base in bases.items():
        first = segment << SEGMENT_BITS | 1
        previous = row_encoding.ZERO_HASH if base is None else hashes.get(base, b"")
        is_free = first not in hashes
        if is_free and row_encoding.entry_hash(previous, raw_id, time, json) == expected:
            return first
    return None


def _is_far(key: int, hashes: dict[int, bytes]) -> bool:
    below = [k for k in hashes if k < key and k >> SEGMENT_BITS == key >> SEGMENT_BITS]
    gap = key - max(below, default=key >> SEGMENT_BITS << SEGMENT_BITS)
    return gap > 10 * len(hashes) + 1_000
