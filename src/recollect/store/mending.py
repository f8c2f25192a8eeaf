"""Logical repair, inside a store whose structure is sound. Nothing is deleted: see quarantine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from recollect.errors import Damaged
from recollect.store import checks, indexing, rows, sessions
from recollect.store.checks import SEALED, Finding
from recollect.store.ids import now
from recollect.store.reading import Reader, bounds, dictionaries, stand_in
from recollect.store.writing import Writer


def mend(writer: Writer, progress: Callable[[str], None]) -> list[Finding]:
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
    if done or checks.search_index(writer):
        progress("building the search index anew")
        indexing.rebuild(writer)
        done.append(Finding(what="the search index", place="search", repaired="built anew"))
    return done


def _gaps(writer: Writer) -> list[Finding]:
    """A stand-in for each entry that is gone, so that the rest of its line can be read."""
    done = []
    for (line,) in list(writer.db.execute("SELECT line FROM lines")):
        floor, _ = bounds(line)
        missing = checks.missing_entries(writer.db, line)
        for n in missing:
            lost = stand_in(floor + n)
            writer.db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", lost)
        if missing:
            what = f"{len(missing)} entries were missing"
            repaired = "a note stands where each was; the rest of the line can be read"
            done.append(Finding(what=what, place=f"line {line}", repaired=repaired))
    return done


def _hashes(writer: Writer) -> list[Finding]:
    """An entry whose hash alone was hit: its successor's hash proves that the body is right."""
    done = []
    for (line,) in list(writer.db.execute("SELECT line FROM lines")):
        query = "SELECT key, id, time, hash, body FROM entries WHERE key > ? AND key <= ?"
        base = writer.base(line)
        previous = rows.ZERO_HASH if base is None else _hash(writer, base)
        for (key, raw_id, time, sealed, stored), after in pairwise(
            list(writer.db.execute(query, bounds(line)))
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


def _hash(writer: Reader, key: int) -> bytes:
    query = "SELECT hash FROM entries WHERE key = ?"
    return next((bytes(h) for (h,) in writer.db.execute(query, (key,))), b"")


def _computed(
    writer: Reader, previous: bytes, raw_id: bytes, time: int, stored: bytes
) -> bytes | None:
    try:
        return rows.seal(previous, raw_id, time, writer.packer.unpack(stored)[0])
    except Damaged:
        return None


def _bodies(writer: Writer) -> list[Finding]:
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


def _damaged(writer: Writer, line: int) -> set[int]:
    try:
        writer.line(line, mark=False)
    except Damaged as error:
        keys = (sessions.find_key(writer.db, entry) for entry in error.entries)
        return {key for key in keys if key is not None}
    return set()


def _blobs(writer: Writer) -> list[Finding]:
    done = []
    for finding in checks.blobs(writer):
        number = int(finding.place.split()[1])
        _set_aside(writer, finding.place, "data FROM blobs WHERE number = ?", number)
        writer.db.execute("DELETE FROM blobs WHERE number = ?", (number,))
        done.append(
            Finding(what=finding.what, place=finding.place, repaired="moved to the quarantine")
        )
    return done


def _dictionaries(writer: Writer) -> list[Finding]:
    """A damaged copy is written anew from the good one."""
    done, good = [], dictionaries(writer.db)
    for finding in checks.dictionaries(writer.db):
        copy = int(finding.place.split()[1])
        query = "SELECT number FROM dictionaries WHERE copy = ?"
        ((number,),) = writer.db.execute(query, (copy,))
        if data := good.get(number):
            fields = (rows.address(data), data, copy)
            writer.db.execute("UPDATE dictionaries SET address=?, data=? WHERE copy=?", fields)
            what, place = finding.what, finding.place
            done.append(Finding(what=what, place=place, repaired="written anew from the other"))
    return done


def _set_aside(writer: Writer, place: str, what: str, key: int | None) -> None:
    writer.db.execute(
        f"INSERT INTO quarantine(place, time, reason, data) SELECT ?, ?, ?, {what}",
        (place, now(), "did not verify", key),
    )


def _seals(writer: Writer) -> list[Finding]:
    """Rows that no hash covers: what the log can tell is taken from there, and said."""
    done = []
    for finding in checks.seals(writer.db):
        table, number = finding.place.split()
        key, fields = SEALED[table]
        if table == "lines":
            _mend_depth(writer, int(number))
        query = f"SELECT {fields} FROM {table} WHERE {key} = ?"  # noqa: S608 - our own names
        ((*values,),) = writer.db.execute(query, (int(number),))
        update = f"UPDATE {table} SET seal = ? WHERE {key} = ?"  # noqa: S608 - our own names
        writer.db.execute(update, (rows.seal_row(*values), int(number)))
        shown = ", ".join(v.hex() if isinstance(v, bytes) else str(v) for v in values)
        done.append(
            Finding(
                what=finding.what,
                place=finding.place,
                repaired=f"kept as it is now: {fields} = {shown}; please check it",
            )
        )
    return done


def _mend_depth(writer: Writer, line: int) -> None:
    base = writer.base(line)
    depth = 0 if base is None else sessions.depth_of(writer.db, base)
    writer.db.execute("UPDATE lines SET depth = ? WHERE line = ?", (depth, line))
