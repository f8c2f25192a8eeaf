"""The database's tables, and the steps that bring an older file to the current format.

An entry's key is `segment << SEGMENT_BITS | n`: a *segment* (table `lines`) is an unbroken run of
entries, n counts from 1 without gaps. A session's path is its newest segment, then the part of
another segment up to that segment's base, and so on to the root. So an append touches one place,
the newest entries of a path are one range of keys, a rewind or a fork is one new row, and the head
needs no column: it is the last entry of the session's newest segment, or that segment's base while
the segment is empty.

Rows outside the hash chain (sessions, segments, projects) carry a checksum of their fields in the
column `seal`. Project names are bytes, because file names need not be text. A dictionary is stored
twice, because every entry compressed with it depends on it. `counts` and `search` are derived from
the log and can be rebuilt. `journal` binds the write-ahead log to this file (see `journal_mark`).
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable

import apsw

from recollect.errors import CannotOpen, Damaged, NewerStore
from recollect.store.row_encoding import row_checksum

APPLICATION_ID = 0x7265636F  # "reco"
FORMAT = 4
SEGMENT_BITS = 24
SEGMENT_MASK = (1 << SEGMENT_BITS) - 1
MARKED_FORMAT = 4  # the first with a mark
MARK_BYTES = 20  # "reco", 8 random ones, a counter, a checksum; see `journal_mark`

_TABLES = """
CREATE TABLE recollect(
    format INTEGER NOT NULL
);
INSERT INTO recollect VALUES (0);
CREATE TABLE dictionaries(
    copy INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    address BLOB NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE projects(
    project INTEGER PRIMARY KEY,
    git BLOB UNIQUE,
    path BLOB NOT NULL,
    inode BLOB NOT NULL,
    names BLOB NOT NULL,
    seal BLOB NOT NULL
);
CREATE TABLE sessions(
    session INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    project INTEGER REFERENCES projects,
    title TEXT NOT NULL,
    created INTEGER NOT NULL,
    trashed INTEGER,
    seal BLOB NOT NULL
);
CREATE TABLE entries(
    key INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    time INTEGER NOT NULL,
    hash BLOB NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE lines(
    line INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions,
    base INTEGER REFERENCES entries,
    depth INTEGER NOT NULL,
    indexed INTEGER NOT NULL DEFAULT 0,
    seal BLOB NOT NULL
);
CREATE INDEX lines_of_session ON lines(session);
CREATE TABLE pending(
    line INTEGER PRIMARY KEY
);
CREATE TABLE blobs(
    number INTEGER PRIMARY KEY,
    address BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE drafts(
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions,
    parent INTEGER REFERENCES entries,
    writer TEXT NOT NULL,
    time INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE quarantine(
    number INTEGER PRIMARY KEY,
    place TEXT NOT NULL,
    time INTEGER NOT NULL,
    reason TEXT NOT NULL,
    data BLOB
);
"""
FTS_OPTIONS = """text, content='', detail=none, tokenize="unicode61 remove_diacritics 2" """


def _create_format_1(db: apsw.Connection) -> None:
    db.execute(_TABLES)
    db.execute(f"CREATE VIRTUAL TABLE search USING fts5({FTS_OPTIONS})")
    # fewer, larger merges: indexing takes a quarter less time, and searches are as fast
    db.execute("INSERT INTO search(search, rank) VALUES ('automerge', 8)")


def _add_token_counts(db: apsw.Connection) -> None:
    db.execute(
        "CREATE TABLE counts(counter TEXT NOT NULL, key INTEGER NOT NULL, data BLOB NOT NULL, "
        "PRIMARY KEY(counter, key)) WITHOUT ROWID"
    )


def _add_owners(db: apsw.Connection) -> None:
    """The checksum covers the owner too; a row whose checksum was wrong keeps a wrong one."""
    db.execute("ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT ''")
    query = "SELECT session, seal, id, project, title, created, trashed FROM sessions"
    for number, checksum, *fields in list(db.execute(query)):
        is_intact = row_checksum(*fields) == checksum
        renewed = row_checksum(*fields, "") if is_intact else checksum
        update = "UPDATE sessions SET owner = '', seal = ? WHERE session = ?"
        db.execute(update, (renewed, number))


def _add_journal_mark(db: apsw.Connection) -> None:
    db.execute("CREATE TABLE journal(mark BLOB NOT NULL)")
    db.execute("INSERT INTO journal VALUES (?)", (encode_mark(os.urandom(8), 0),))


def encode_mark(name: bytes, count: int) -> bytes:
    mark = APPLICATION_ID.to_bytes(4, "big") + name + (count & 0xFFFF_FFFF).to_bytes(4, "big")
    return mark + zlib.crc32(mark).to_bytes(4, "big")


# One step for each format: _STEPS[n] brings a file of format n to format n + 1. A released step
# never changes; a new format is a new step at the end.
_STEPS: tuple[Callable[[apsw.Connection], None], ...] = (
    _create_format_1,
    _add_token_counts,
    _add_owners,
    _add_journal_mark,
)


def refuse_foreign_file(db: apsw.Connection, path: str) -> None:
    """Raise unless the file is a store of this version or an older one; changes nothing.

    The format is both in the file's header and in a table, so that one flipped bit in the header
    cannot make a store look like another program's file, a newer store or an empty file.
    """
    header = (int(db.pragma("application_id")), int(db.pragma("user_version")))
    ours = list(db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'recollect'"))
    if ours:
        ((found,),) = db.execute("SELECT format FROM recollect")
        if header != (APPLICATION_ID, found):
            raise Damaged(f"the header of {path} is damaged: it has {header}, the table {found}")
        if found > FORMAT:
            raise NewerStore(path, found, FORMAT)
    elif any(header) or list(db.execute("SELECT 1 FROM sqlite_schema LIMIT 1")):
        raise CannotOpen(path, "this is another program's database; choose another file")
    else:
        raise CannotOpen(
            path,
            "it is empty, which a store never is: it was truncated, or something else created it. "
            "Run `recollect doctor --repair`, or remove the file to start a new store",
        )


def migrate(db: apsw.Connection) -> None:
    """Bring the file to the current format, in one transaction."""
    if int(db.pragma("user_version")) == FORMAT:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = int(db.pragma("user_version"))  # another process may have migrated it
        for step in _STEPS[found:]:
            step(db)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", FORMAT)
        db.execute("UPDATE recollect SET format = ?", (FORMAT,))
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
