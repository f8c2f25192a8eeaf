"""The doctor's checks: each returns its findings and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import apsw
import msgspec

from recollect.errors import Damaged
from recollect.store import row_encoding, session_rows
from recollect.store.journal_mark import find_mark
from recollect.store.log_reader import segment_bounds
from recollect.store.log_writer import LogWriter
from recollect.store.search_tokenizer import index_text
from recollect.store.sql_schema import FTS_OPTIONS, MARKED_FORMAT, SEGMENT_BITS, SEGMENT_MASK


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    what: str
    place: str
    repairable: bool = True
    repaired: str = ""  # what was done; empty if nothing was
    entries: tuple[str, ...] = ()


def check_structure(db: apsw.Connection) -> list[Finding]:
    """SQLite's own checks: pages, indexes, references; and what binds the journal to the file."""
    try:
        results = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
        found = [Finding(what=line, place="structure") for line in results if line != "ok"]
        for table, rowid, parent, _ in db.execute("PRAGMA foreign_key_check"):
            what = f"row {rowid} of {table} refers to a row of {parent} that is missing"
            found.append(Finding(what=what, place="structure"))
        if int(db.pragma("user_version")) >= MARKED_FORMAT:
            find_mark(db)
    except Damaged as error:
        found.append(Finding(what=error.what, place="structure"))
    except apsw.Error as error:
        return [Finding(what=str(error), place="structure")]
    return found


def check_contents(writer: LogWriter, progress: Callable[[str], None]) -> list[Finding]:
    progress("checking checksums")
    findings = check_row_checksums(writer.db)
    progress("checking entries")
    findings += check_entries(writer)
    progress("checking stored content")
    findings += check_blobs(writer) + check_dictionaries(writer.db)
    if findings:
        return findings  # damaged entries have no words to compare; a repair rebuilds the index
    progress("checking the search index")
    return check_search_index(writer)


def check_row_checksums(db: apsw.Connection) -> list[Finding]:
    found = []
    for table, (key, _) in session_rows.CHECKSUMMED_COLUMNS.items():
        columns = session_rows.checksummed_columns(db, table)
        query = f"SELECT {key}, seal, {columns} FROM {table}"  # noqa: S608 - our own names
        for number, checksum, *values in db.execute(query):
            if row_encoding.row_checksum(*values) != checksum:
                what = f"row {number} of {table} is not as it was written"
                found.append(Finding(what=what, place=f"{table} {number}"))
    return found


def check_entries(writer: LogWriter) -> list[Finding]:
    found: list[Finding] = []
    segments = writer.db.execute("SELECT line, base, depth, indexed FROM lines")
    for segment, base, depth, indexed in list(segments):
        place = f"segment {segment}"
        present = entry_numbers(writer.db, segment)
        if missing := missing_numbers(present):
            found.append(Finding(what=f"{len(missing)} entries are missing", place=place))
        try:
            writer.segment(segment, mark=False)
        except Damaged as error:
            found.append(Finding(what=error.what, place=place, entries=error.entries))
        if max(present, default=0) < indexed:
            what = "the newest entries are missing: the index has seen more"
            found.append(Finding(what=what, place=place, repairable=False))
        if base is not None and depth != session_rows.depth_of(writer.db, base):
            found.append(Finding(what="its depth is wrong", place=place))
    return found


def entry_numbers(db: apsw.Connection, segment: int) -> set[int]:
    query = "SELECT key FROM entries WHERE key > ? AND key <= ?"
    return {key & SEGMENT_MASK for (key,) in db.execute(query, segment_bounds(segment))}


def missing_numbers(present: set[int]) -> list[int]:
    """The numbers that a segment lacks before its last entry."""
    return [n for n in range(1, max(present, default=0)) if n not in present]


def check_blobs(writer: LogWriter) -> list[Finding]:
    found = []
    for number, digest in list(writer.db.execute("SELECT number, address FROM blobs")):
        try:
            writer.blob(digest)
        except Damaged as error:
            found.append(Finding(what=error.what, place=f"blob {number}"))
    return found


def check_dictionaries(db: apsw.Connection) -> list[Finding]:
    what = "a copy of the compression dictionary is damaged"
    return [
        Finding(what=what, place=f"dictionary {copy}")
        for copy, digest, data in db.execute("SELECT copy, address, data FROM dictionaries")
        if row_encoding.content_address(data) != digest
    ]


def check_search_index(writer: LogWriter) -> list[Finding]:
    """Compare the words of the index with those of the log, indexed again in memory."""
    fresh = apsw.Connection(":memory:")
    fresh.execute(f"CREATE VIRTUAL TABLE search USING fts5({FTS_OPTIONS})")
    fresh.execute("BEGIN")
    fresh.executemany("INSERT INTO search(rowid, text) VALUES (?, ?)", _indexed_texts(writer))
    fresh.execute("COMMIT")
    try:
        same = _vocabulary(writer.db) == _vocabulary(fresh)
    except apsw.Error:
        same = False
    what = "the search index does not match the log; searches may miss entries"
    return [] if same else [Finding(what=what, place="search")]


def _indexed_texts(writer: LogWriter) -> Iterator[tuple[int, str]]:
    indexed = f"line = key >> {SEGMENT_BITS} AND key & {SEGMENT_MASK} <= indexed"
    query = f"SELECT key, body FROM entries JOIN lines ON {indexed}"  # noqa: S608 - our own names
    for key, stored in writer.db.execute(query):
        try:
            text = index_text(writer.body(stored))
        except (Damaged, LookupError, ValueError):
            continue  # reported as a damaged entry
        if text:
            yield key, text


def _vocabulary(db: apsw.Connection) -> list[tuple[str, int, int, int]]:
    """Each word with how many entries have it, and sums that identify them; computed by SQLite."""
    create = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.words USING fts5vocab(main, search, instance)"
    db.execute(create)
    sums = "count(*), sum(doc), sum(doc * 2654435761 % 1000000007)"
    query = f"SELECT term, {sums} FROM temp.words GROUP BY term ORDER BY term"  # noqa: S608
    try:
        return list(db.execute(query))
    finally:
        db.execute("DROP TABLE temp.words")
