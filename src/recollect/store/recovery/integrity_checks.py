"""The single checks of the doctor: each returns what it found, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import apsw
import msgspec

from recollect.errors import Damaged
from recollect.store import row_encoding
from recollect.store.log_reader import segment_bounds
from recollect.store.log_writer import LogWriter
from recollect.store.search_tokenizer import index_text
from recollect.store.sql_schema import FTS_OPTIONS, SEGMENT_MASK


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    place: str
    repairable: bool = True
    repaired: str = ""  # what was done; empty while nothing was
    entries: tuple[str, ...] = ()


# Which fields a seal covers, by table.
CHECKSUMMED_COLUMNS = {
    "sessions": ("session", "id, project, title, created, trashed"),
    "lines": ("line", "line, session, base, depth"),
    "projects": ("project", "git, path, inode, names"),
}


def check_structure(db: apsw.Connection) -> list[Finding]:
    """SQLite's own checks: pages, indexes, references."""
    try:
        said = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
        found = [Finding(what=line, place="structure") for line in said if line != "ok"]
        for table, rowid, parent, _ in db.execute("PRAGMA foreign_key_check"):
            what = f"row {rowid} of {table} refers to a row of {parent} that is missing"
            found.append(Finding(what=what, place="structure"))
    except apsw.Error as error:
        return [Finding(what=str(error), place="structure")]
    return found


def check_contents(writer: LogWriter, progress: Callable[[str], None]) -> list[Finding]:
    progress("checking seals")
    findings = check_row_checksums(writer.db)
    progress("checking entries")
    findings += check_entries(writer)
    progress("checking stored content")
    findings += check_blobs(writer) + check_dictionaries(writer.db)
    if findings:
        return findings  # what is damaged cannot tell its words; repairing builds the index anew
    progress("checking the search index")
    return check_search_index(writer)


def check_row_checksums(db: apsw.Connection) -> list[Finding]:
    found = []
    for table, (key, fields) in CHECKSUMMED_COLUMNS.items():
        query = f"SELECT {key}, seal, {fields} FROM {table}"  # noqa: S608 - our own names
        for number, seal, *values in db.execute(query):
            if row_encoding.row_checksum(*values) != seal:
                what = f"row {number} of {table} is not as it was written"
                found.append(Finding(what=what, place=f"{table} {number}"))
    return found


def check_entries(writer: LogWriter) -> list[Finding]:
    found: list[Finding] = []
    lines = writer.db.execute("SELECT line, base, depth, indexed FROM lines")
    for line, base, depth, indexed in list(lines):
        place = f"line {line}"
        if missing := missing_entries(writer.db, line):
            what = f"{len(missing)} entries are missing"
            found.append(Finding(what=what, place=place))
        try:
            writer.line(line, mark=False)
        except Damaged as error:
            found.append(Finding(what=error.what, place=place, entries=error.entries))
        if last_number(writer.db, line) < indexed:
            what = "the newest entries are missing: the index has seen more"
            found.append(Finding(what=what, place=place, repairable=False))
        if base is not None and depth != expected_depth(writer.db, base):
            found.append(Finding(what="its depth does not fit", place=place))
    return found


def missing_entries(db: apsw.Connection, line: int) -> list[int]:
    """The numbers that a line lacks between its first entry and its last."""
    floor, top = segment_bounds(line)
    query = "SELECT key FROM entries WHERE key > ? AND key <= ?"
    present = {key - floor for (key,) in db.execute(query, (floor, top))}
    return [n for n in range(1, max(present, default=0)) if n not in present]


def last_number(db: apsw.Connection, line: int) -> int:
    query = "SELECT coalesce(max(key), 0) FROM entries WHERE key > ? AND key <= ?"
    ((key,),) = db.execute(query, segment_bounds(line))
    return int(key) & SEGMENT_MASK


def expected_depth(db: apsw.Connection, base: int) -> int:
    from recollect.store.session_rows import depth_of

    return depth_of(db, base)


def check_blobs(writer: LogWriter) -> list[Finding]:
    found = []
    for number, digest in list(writer.db.execute("SELECT number, address FROM blobs")):
        try:
            writer.blob(digest)
        except Damaged as error:
            found.append(Finding(what=error.what, place=f"blob {number}", repairable=True))
    return found


def check_dictionaries(db: apsw.Connection) -> list[Finding]:
    found = []
    for copy, digest, data in db.execute("SELECT copy, address, data FROM dictionaries"):
        if row_encoding.content_address(data) != digest:
            what = "a copy of the compression dictionary is damaged"
            found.append(Finding(what=what, place=f"dictionary {copy}"))
    return found


def check_search_index(writer: LogWriter) -> list[Finding]:
    """The words of the index against those of the log, counted anew in memory."""
    db = writer.db
    fresh = apsw.Connection(":memory:")
    fresh.execute(f"CREATE VIRTUAL TABLE search USING fts5({FTS_OPTIONS})")
    fresh.execute("BEGIN")
    fresh.executemany("INSERT INTO search(rowid, text) VALUES (?, ?)", _indexed(writer))
    fresh.execute("COMMIT")
    try:
        same = _vocabulary(db) == _vocabulary(fresh)
    except apsw.Error:
        same = False
    if same:
        return []
    what = "the search index does not fit the log; searches may miss entries"
    return [Finding(what=what, place="search")]


def _indexed(writer: LogWriter) -> Iterator[tuple[int, str]]:
    for line, indexed in list(writer.db.execute("SELECT line, indexed FROM lines")):
        floor, _ = segment_bounds(line)
        query = "SELECT key, body FROM entries WHERE key > ? AND key <= ?"
        for key, stored in writer.db.execute(query, (floor, floor + indexed)):
            try:
                words = index_text(writer.body(stored))
            except (Damaged, LookupError, ValueError):
                continue  # reported as a damaged entry
            if words:
                yield key, words


def _vocabulary(db: apsw.Connection) -> list[tuple[str, int, int, int]]:
    """Each word with how many entries have it, and sums that tell which; added up by SQLite."""
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, search, instance)"
    )
    try:
        return list(
            db.execute(
                "SELECT term, count(*), sum(doc), sum(doc * 2654435761 % 1000000007)"
                " FROM temp.words GROUP BY term ORDER BY term"
            )
        )
    finally:
        db.execute("DROP TABLE temp.words")


def count_contents(db: apsw.Connection) -> dict[str, Any]:
    def one(query: str) -> int:
        return int(next(iter(db.execute(query)))[0] or 0)

    return {
        "sessions": one("SELECT count(*) FROM sessions WHERE trashed IS NULL"),
        "trashed_sessions": one("SELECT count(*) FROM sessions WHERE trashed IS NOT NULL"),
        "trashed_bytes": one(
            "SELECT sum(length(body)) FROM entries JOIN lines l ON l.line = key >> 24"
            " JOIN sessions s ON s.session = l.session WHERE s.trashed IS NOT NULL"
        ),
        "entries": one("SELECT count(*) FROM entries"),
        "contents": one("SELECT count(*) FROM blobs"),
        "quarantined": one("SELECT count(*) FROM quarantine"),
        "bytes_reclaimable": int(db.pragma("freelist_count")) * int(db.pragma("page_size")),
        "lines_waiting_for_index": one("SELECT count(*) FROM pending"),
    }
