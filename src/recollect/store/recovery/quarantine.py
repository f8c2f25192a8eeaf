"""Repairs rows in a store whose structure is intact. Damaged data moves to the table `quarantine`;
nothing is deleted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import apsw
import msgspec

from recollect.errors import Damaged
from recollect.store import row_encoding, search_index, session_rows
from recollect.store.ids import now
from recollect.store.log_reader import load_dictionaries, missing_entry_row, segment_bounds
from recollect.store.log_writer import LogWriter
from recollect.store.recovery import integrity_checks
from recollect.store.recovery.integrity_checks import Finding, entry_numbers, missing_numbers


def repair_rows(writer: LogWriter, progress: Callable[[str], None]) -> list[Finding]:
    """Make every repair that is possible, in one transaction; then rebuild the search index."""
    progress("moving damaged entries to quarantine")
    with writer.transaction():
        done = [*_fill_gaps(writer), *_repair_hashes(writer), *_quarantine_bodies(writer)]
        done += _quarantine_blobs(writer) + _repair_checksums(writer) + _repair_dictionaries(writer)
    if done or integrity_checks.check_search_index(writer):
        progress("rebuilding the search index")
        search_index.rebuild_index(writer)
        done.append(Finding(what="the search index", place="search", repaired="rebuilt"))
    return done


def quarantine_data(db: apsw.Connection, place: str, reason: str, data: object) -> None:
    insert = "INSERT INTO quarantine(place, time, reason, data) VALUES (?, ?, ?, ?)"
    db.execute(insert, (place, now(), reason, data))


def _segments(writer: LogWriter) -> list[int]:
    return [segment for (segment,) in writer.db.execute("SELECT line FROM lines")]


def _fill_gaps(writer: LogWriter) -> list[Finding]:
    """Insert a placeholder for each missing entry, so that the rest of its segment can be read."""
    done = []
    for segment in _segments(writer):
        floor, _ = segment_bounds(segment)
        missing = missing_numbers(entry_numbers(writer.db, segment))
        rows = [missing_entry_row(floor + n) for n in missing]
        writer.db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", rows)
        if missing:
            repaired = "a note takes the place of each; the rest of the segment can be read"
            done.append(_repaired(segment, f"{len(missing)} entries were missing", repaired))
    return done


def _repair_hashes(writer: LogWriter) -> list[Finding]:
    """Recompute a hash that is damaged while its body is not: the next entry's hash proves it."""
    done = []
    for segment in _segments(writer):
        query = "SELECT key, id, time, hash, body FROM entries WHERE key > ? AND key <= ?"
        base = writer.base(segment)
        previous = row_encoding.ZERO_HASH if base is None else _stored_hash(writer, base)
        rows = list(writer.db.execute(query, segment_bounds(segment)))
        for (key, raw_id, time, stored_hash, body), after in pairwise(rows):
            right = _compute_hash(writer, previous, raw_id, time, body)
            previous = stored_hash
            if right is None or right == stored_hash:
                continue
            if _compute_hash(writer, right, after[1], after[2], after[4]) == after[3]:
                writer.db.execute("UPDATE entries SET hash = ? WHERE key = ?", (right, key))
                previous = right
                what, how = "the hash of an entry was damaged", "the next entry confirms it"
                done.append(_repaired(segment, what, f"recomputed; {how}", raw_id.hex()))
    return done


def _stored_hash(writer: LogWriter, key: int) -> bytes:
    query = "SELECT hash FROM entries WHERE key = ?"
    return next((bytes(h) for (h,) in writer.db.execute(query, (key,))), b"")


def _compute_hash(
    writer: LogWriter, previous: bytes, raw_id: bytes, time: int, body: bytes
) -> bytes | None:
    try:
        return row_encoding.entry_hash(previous, raw_id, time, writer.packer.unpack(body)[0])
    except Damaged:
        return None


def _quarantine_bodies(writer: LogWriter) -> list[Finding]:
    done = []
    for segment in _segments(writer):
        while damaged := _damaged_keys(writer, segment):
            # a damaged entry makes its successor fail too. The first of each run goes, without its
            # hash if the next one fails as well, and the rest is verified again
            for key in [key for key in damaged if key - 1 not in damaged]:
                entry = writer.id_of(key)
                _quarantine_column(writer, f"entry {entry}", "body FROM entries WHERE key = ?", key)
                update = "UPDATE entries SET body = x'', hash = iif(?, x'', hash) WHERE key = ?"
                writer.db.execute(update, (key + 1 in damaged, key))
                moved = "moved to quarantine"
                done.append(_repaired(segment, "an entry was damaged", moved, entry))
    return done


def _damaged_keys(writer: LogWriter, segment: int) -> set[int]:
    try:
        writer.segment(segment, mark=False)
    except Damaged as error:
        keys = (session_rows.find_key(writer.db, entry) for entry in error.entries)
        return {key for key in keys if key is not None}
    return set()


def _quarantine_blobs(writer: LogWriter) -> list[Finding]:
    done = []
    for finding in integrity_checks.check_blobs(writer):
        number = int(finding.place.split()[1])
        _quarantine_column(writer, finding.place, "data FROM blobs WHERE number = ?", number)
        writer.db.execute("DELETE FROM blobs WHERE number = ?", (number,))
        done.append(_with_repair(finding, "moved to quarantine"))
    return done


def _quarantine_column(writer: LogWriter, place: str, column: str, key: int) -> None:
    ((data,),) = writer.db.execute(f"SELECT {column}", (key,))
    quarantine_data(writer.db, place, "did not verify", data)


def _repair_dictionaries(writer: LogWriter) -> list[Finding]:
    """Overwrite a damaged copy with the good one."""
    done, good = [], load_dictionaries(writer.db)
    for finding in integrity_checks.check_dictionaries(writer.db):
        copy = int(finding.place.split()[1])
        query = "SELECT number FROM dictionaries WHERE copy = ?"
        ((number,),) = writer.db.execute(query, (copy,))
        if data := good.get(number):
            fields = (row_encoding.content_address(data), data, copy)
            writer.db.execute("UPDATE dictionaries SET address=?, data=? WHERE copy=?", fields)
            done.append(_with_repair(finding, "restored from the other copy"))
    return done


def _repair_checksums(writer: LogWriter) -> list[Finding]:
    """Rows outside the hash chain: take from the log what it knows, and tell the user the rest."""
    done = []
    for finding in integrity_checks.check_row_checksums(writer.db):
        table, number = finding.place.split()
        columns = session_rows.CHECKSUMMED_COLUMNS[table][1]
        if table == "lines":
            _repair_depth(writer, int(number))
        values = session_rows.update_checksum(writer.db, table, int(number))
        shown = ", ".join(v.hex() if isinstance(v, bytes) else str(v) for v in values)
        done.append(_with_repair(finding, f"kept as it is: {columns} = {shown}; please check it"))
    return done


def _repair_depth(writer: LogWriter, segment: int) -> None:
    base = writer.base(segment)
    depth = 0 if base is None else session_rows.depth_of(writer.db, base)
    writer.db.execute("UPDATE lines SET depth = ? WHERE line = ?", (depth, segment))


def _repaired(segment: int, what: str, repaired: str, *entries: str) -> Finding:
    return Finding(what=what, place=f"segment {segment}", repaired=repaired, entries=entries)


def _with_repair(finding: Finding, repaired: str) -> Finding:
    return msgspec.structs.replace(finding, repaired=repaired)
