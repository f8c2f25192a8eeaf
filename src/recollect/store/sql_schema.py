"""The database's tables, and how an older file becomes a current one.

An entry's key is `line << LINE_BITS | n`: a *line* is an unbroken run of entries, n counts from 1
without gaps. A session's path is its newest line, then the part of another line below that line's
base, and so on to the root. So appending touches one place, the newest entries of a path are one
range of keys, a rewind or a fork is one new row in `lines`, and the head needs no column: it is the
last entry of the session's newest line, or that line's base while the line is empty.

What is not covered by the hash chain (sessions, lines, projects) carries a `seal` over its fields.
What names a project is bytes, because file names need not be text.
A dictionary is kept twice, because every entry that was compressed with it hangs on it.
`counts` and `search` are derived from the log and can be made again.
"""

from __future__ import annotations

from collections.abc import Callable

import apsw

from recollect.errors import CannotOpen, Damaged, NewerStore

APPLICATION_ID = 0x7265636F  # "reco"
FORMAT = 2
SEGMENT_BITS = 24
SEGMENT_MASK = (1 << SEGMENT_BITS) - 1

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


def _first(db: apsw.Connection) -> None:
    db.execute(_TABLES)
    db.execute(f"CREATE VIRTUAL TABLE search USING fts5({FTS_OPTIONS})")
    # fewer, larger merges: indexing takes a quarter less, and searches are no slower
    db.execute("INSERT INTO search(search, rank) VALUES ('automerge', 8)")


def _second(db: apsw.Connection) -> None:
    db.execute(
        "CREATE TABLE counts(counter TEXT NOT NULL, key INTEGER NOT NULL, data BLOB NOT NULL, "
        "PRIMARY KEY(counter, key)) WITHOUT ROWID"
    )


# One step for each format: _STEPS[n] brings a file of format n to format n + 1. A released step
# never changes; a new format is a new step at the end.
_STEPS: tuple[Callable[[apsw.Connection], None], ...] = (_first, _second)


def refuse_foreign_file(db: apsw.Connection, path: str) -> None:
    """Before anything is changed: is this ours, and not from a newer version?

    The format stands in the file's header and in a table. One flipped bit in the header must not
    make a store look like another program's, or like a newer one, or like an empty one.
    """
    header = (int(db.pragma("application_id")), int(db.pragma("user_version")))
    ours = list(db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'recollect'"))
    if ours:
        ((found,),) = db.execute("SELECT format FROM recollect")
        if header != (APPLICATION_ID, found):
            raise Damaged(f"the header of {path} is damaged: it says {header}, the store {found}")
        if found > FORMAT:
            raise NewerStore(path, found, FORMAT)
    elif any(header) or list(db.execute("SELECT 1 FROM sqlite_schema LIMIT 1")):
        raise CannotOpen(path, "this is another program's database; name another file")
    else:
        raise CannotOpen(
            path,
            "it is empty, which a store never is: it was cut off, or something else made it. "
            "Run `recollect doctor --repair`, or remove the file to begin a new store",
        )


def migrate(db: apsw.Connection) -> None:
    """Bring the file to the current format, in one transaction."""
    if int(db.pragma("user_version")) == FORMAT:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = int(db.pragma("user_version"))  # another process may have been faster
        for step in _STEPS[found:]:
            step(db)
        db.pragma("application_id", APPLICATION_ID)
        db.pragma("user_version", FORMAT)
        db.execute("UPDATE recollect SET format = ?", (FORMAT,))
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
