"""Logical repair, inside a store whose structure is sound. Nothing is deleted: see quarantine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from recollect.errors import Damaged
from recollect.store import row_encoding, search_index, session_rows
from recollect.store.ids import now
from recollect.store.log_reader import (
    LogReader,
    load_dictionaries,
    missing_entry_row,
    segment_bounds,
)
from recollect.store.log_writer import LogWriter
from recollect.store.recovery import integrity_checks
from recollect.store.recovery.integrity_checks import CHECKSUMMED_COLUMNS, Finding


def repair_rows(writer: LogWriter, progress: Callable[[str], None]) -> list[Finding]:
    """Repair everything that can be, in one transaction; then the search index."""
    progress("moving damaged entries to the quarantine")
    writer.begin()
    try:
        done = [*_gaps(writer), *_hashes(writer), *_bodies(writer), *_blobs(writer)]
        done += _seals(writer) + _dictionaries(writer)
        writer.commit()
    finally:
        if writer.db.in_transaction:
            writer.db.execute("ROLLBACK")
    if done or integrity_checks.check_search_index(writer):
        progress("building the search index anew")
        search_index.rebuild_index(writer)
        done.append(Finding(what="the search index", place="search", repaired="built anew"))
    return done


def _gaps(writer: LogWriter) -> list[Finding]:
    """A stand-in for each entry that is gone, so that the rest of its line can be read."""
    done = []
    for (line,) in list(writer.db.execute("SELECT line FROM lines")):
        floor, _ = segment_bounds(line)
        missing = integrity_checks.missing_entries(writer.db, line)
        for n in missing:
            lost = missing_entry_row(floor + n)
            writer.db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", lost)
        if missing:
            what = f"{len(missing)} entries were missing"
            repaired = "a note stands where each was; the rest of the line can be read"
            done.append(Finding(what=what, place=f"line {line}", repaired=repaired))
    return done


def _hashes(writer: LogWriter) -> list[Finding]:
    """An entry whose hash alone was hit: its successor's hash proves that the body is right."""
    done = []
    for (line,) in list(writer.db.execute("SELECT line FROM lines")):
        query = "SELECT key, id, time, hash, body FROM entries WHERE key > ? AND key <= ?"
        base = writer.base(line)
        previous = row_encoding.ZERO_HASH if base is None else _hash(writer, base)
        for (key, raw_id, time, sealed, stored), after in pairwise(
            list(writer.db.execute(query, segment_bounds(line)))
        ):
            right = _computed(writer, previous, raw_id, time, stored)
            previous = sealed
            if right in (None, sealed):
                continue
            if _computed(writer, right or b"", after[1], after[2], after[4]) == after[3]:
                writer.db.execute("UPDATE entries SET hash = ? WHERE key = ?", (right, key))
                previous = right or b""
                done.append(_mended_hash(line, raw_id.hex()))
    return done


def _mended_hash(line: int, entry: str) -> Finding:
    repaired = "computed anew; the next entry confirms it"
    what = "the hash of an entry was damaged"
    return Finding(what=what, place=f"line {line}", repaired=repaired, entries=(entry,))


def _hash(writer: LogReader, key: int) -> bytes:
    query = "SELECT hash FROM entries WHERE key = ?"
    return next((bytes(h) for (h,) in writer.db.execute(query, (key,))), b"")


def _computed(
    writer: LogReader, previous: bytes, raw_id: bytes, time: int, stored: bytes
) -> bytes | None:
    try:
        return row_encoding.entry_hash(previous, raw_id, time, writer.packer.unpack(stored)[0])
    except Damaged:
        return None


def _bodies(writer: LogWriter) -> list[Finding]:
    done = []
    for (line,) in list(writer.db.execute("SELECT line FROM lines")):
        while damaged := _damaged(writer, line):
            # of neighbours the first may have taken the next one along: its hash is not to be
            # trusted, so it goes, and what follows is looked at again
            first = [key for key in damaged if key - 1 not in damaged]
            for key in first:
                entry = writer.id_of(key)
                _set_aside(writer, f"entry {entry}", "body FROM entries WHERE key = ?", key)
                doubtful = key + 1 in damaged
                update = "UPDATE entries SET body = x'', hash = iif(?, x'', hash) WHERE key = ?"
                writer.db.execute(update, (doubtful, key))
                what, repaired = "an entry was damaged", "moved to the quarantine"
                done.append(
                    Finding(what=what, place=f"line {line}", repaired=repaired, entries=(entry,))
                )
    return done


def _damaged(writer: LogWriter, line: int) -> set[int]:
    try:
        writer.line(line, mark=False)
    except Damaged as error:
        keys = (session_rows.find_key(writer.db, entry) for entry in error.entries)
        return {key for key in keys if key is not None}
    return set()


def _blobs(writer: LogWriter) -> list[Finding]:
    done = []
    for finding in integrity_checks.check_blobs(writer):
        number = int(finding.place.split()[1])
        _set_aside(writer, finding.place, "data FROM blobs WHERE number = ?", number)
        writer.db.execute("DELETE FROM blobs WHERE number = ?", (number,))
        done.append(
            Finding(what=finding.what, place=finding.place, repaired="moved to the quarantine")
        )
    return done


def _dictionaries(writer: LogWriter) -> list[Finding]:
    """A damaged copy is written anew from the good one."""
    done, good = [], load_dictionaries(writer.db)
    for finding in integrity_checks.check_dictionaries(writer.db):
        copy = int(finding.place.split()[1])
        query = "SELECT number FROM dictionaries WHERE copy = ?"
        ((number,),) = writer.db.execute(query, (copy,))
        if data := good.get(number):
            fields = (row_encoding.content_address(data), data, copy)
            writer.db.execute("UPDATE dictionaries SET address=?, data=? WHERE copy=?", fields)
            what, place = finding.what, finding.place
            done.append(Finding(what=what, place=place, repaired="written anew from the other"))
    return done


def _set_aside(writer: LogWriter, place: str, what: str, key: int | None) -> None:
    writer.db.execute(
        f"INSERT INTO quarantine(place, time, reason, data) SELECT ?, ?, ?, {what}",
        (place, now(), "did not verify", key),
    )


def _seals(writer: LogWriter) -> list[Finding]:
    """Rows that no hash covers: what the log can tell is taken from there, and said."""
    done = []
    for finding in integrity_checks.check_row_checksums(writer.db):
        table, number = finding.place.split()
        key, fields = CHECKSUMMED_COLUMNS[table]
        if table == "lines":
            _mend_depth(writer, int(number))
        query = f"SELECT {fields} FROM {table} WHERE {key} = ?"  # noqa: S608 - our own names
        ((*values,),) = writer.db.execute(query, (int(number),))
        update = f"UPDATE {table} SET seal = ? WHERE {key} = ?"  # noqa: S608 - our own names
        writer.db.execute(update, (row_encoding.row_checksum(*values), int(number)))
        shown = ", ".join(v.hex() if isinstance(v, bytes) else str(v) for v in values)
        done.append(
            Finding(
                what=finding.what,
                place=finding.place,
                repaired=f"kept as it is now: {fields} = {shown}; please check it",
            )
        )
    return done


def _mend_depth(writer: LogWriter, line: int) -> None:
    base = writer.base(line)
    depth = 0 if base is None else session_rows.depth_of(writer.db, base)
    writer.db.execute("UPDATE lines SET depth = ? WHERE line = ?", (depth, line))
