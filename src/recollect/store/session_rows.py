"""The rows of sessions and of their segments.

A session's head is not stored. It is the last entry of the session's newest segment or, while that
segment is empty, the segment's base; rewinding and forking add a segment and change nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import apsw
import msgspec

from recollect.entries import Body, Message, Text, Title
from recollect.errors import AlreadyExists, BadInput, UnknownEntry, UnknownSession
from recollect.store import row_encoding
from recollect.store.contract import Project
from recollect.store.ids import is_id, now
from recollect.store.log_reader import segment_bounds
from recollect.store.project_rows import save_project
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

TITLE_CHARACTERS = 80
_CONTAINS = f"""
WITH RECURSIVE bases(key) AS (
  SELECT base FROM lines WHERE session = ?1
  UNION SELECT base FROM bases JOIN lines ON line = key >> {SEGMENT_BITS})
SELECT 1 FROM lines WHERE line = ?2 AND session = ?1
UNION ALL SELECT 1 FROM bases WHERE key >> {SEGMENT_BITS} = ?2 AND key >= ?3 LIMIT 1
"""  # noqa: S608 - the numbers are constants


class Head(msgspec.Struct, frozen=True):
    """The entry to append after, and the segment that the next append goes to."""

    segment: int
    key: int | None
    id: str | None
    hash: bytes
    depth: int  # entries on the path


def session_number(db: apsw.Connection, session: str) -> int:
    query = "SELECT session FROM sessions WHERE id = ?"
    for (number,) in db.execute(query, (_raw(session),)):
        return int(number)
    raise UnknownSession(session)


def find_key(db: apsw.Connection, entry_id: str) -> int | None:
    query = "SELECT key FROM entries WHERE id = ?"
    return next((int(key) for (key,) in db.execute(query, (_raw(entry_id),))), None)


def _raw(entry_id: str) -> bytes:
    return bytes.fromhex(entry_id) if is_id(entry_id) else b""


def read_head(db: apsw.Connection, session: int) -> Head:
    ((segment, base, depth),) = db.execute(
        "SELECT line, base, depth FROM lines WHERE session = ? ORDER BY line DESC LIMIT 1",
        (session,),
    )
    newest = db.execute(
        "SELECT key, id, hash FROM entries WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1",
        segment_bounds(segment),
    )
    for key, raw_id, digest in newest:
        return Head(segment, key, raw_id.hex(), digest, depth + (key & SEGMENT_MASK))
    if base is None:
        return Head(segment, None, None, row_encoding.ZERO_HASH, 0)
    ((raw_id, digest),) = db.execute("SELECT id, hash FROM entries WHERE key = ?", (base,))
    return Head(segment, base, raw_id.hex(), digest, depth)


def create_session(
    db: apsw.Connection, session: str, project: Project | None, title: str, created: int
) -> None:
    owner = None if project is None else save_project(db, project)
    _create(db, session, owner, title, created, None)


def fork_session(
    db: apsw.Connection, session: str, at: str | None, forked: str, title: str
) -> None:
    number = session_number(db, session)
    base = read_head(db, number).key if at is None else key_in_session(db, number, session, at)
    query = "SELECT project, title FROM sessions WHERE session = ?"
    ((owner, old_title),) = db.execute(query, (number,))
    _create(db, forked, owner, title or old_title, now(), base)


def _create(
    db: apsw.Connection, session: str, owner: int | None, title: str, created: int, base: int | None
) -> None:
    if not is_id(session):
        raise BadInput(f"session id {session!r} is not 32 hexadecimal digits")
    fields = (bytes.fromhex(session), owner, clean_title(title), created, None)
    try:
        db.execute(
            "INSERT INTO sessions(id, project, title, created, trashed, seal)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (*fields, row_encoding.row_checksum(*fields)),
        )
    except apsw.ConstraintError as error:
        raise AlreadyExists("a session", session) from error
    add_segment(db, db.last_insert_rowid(), base)


def add_segment(
    db: apsw.Connection, session: int, base: int | None, depth: int | None = None
) -> int:
    """Add a segment that continues from `base`; it becomes the session's newest."""
    if depth is None:
        depth = 0 if base is None else depth_of(db, base)
    ((segment,),) = db.execute("SELECT coalesce(max(line), 0) + 1 FROM lines")
    insert_segment(db, segment, session, base, depth)
    return int(segment)


def insert_segment(db: apsw.Connection, *fields: int | None) -> None:
    """Insert the row of a segment: its number, session, base and depth."""
    insert = "INSERT INTO lines(line, session, base, depth, seal) VALUES (?, ?, ?, ?, ?)"
    db.execute(insert, (*fields, row_encoding.row_checksum(*fields)))


def depth_of(db: apsw.Connection, key: int) -> int:
    ((depth,),) = db.execute("SELECT depth FROM lines WHERE line = ?", (key >> SEGMENT_BITS,))
    return int(depth) + (key & SEGMENT_MASK)


def key_in_session(db: apsw.Connection, session: int, name: str, entry_id: str) -> int:
    key = find_key(db, entry_id)
    if key is None or not contains_entry(db, session, key):
        raise UnknownEntry(entry_id, name)
    return key


def contains_entry(db: apsw.Connection, session: int, key: int) -> bool:
    """Whether the session wrote the entry or forked from a path that includes it."""
    return bool(list(db.execute(_CONTAINS, (session, key >> SEGMENT_BITS, key))))


def set_column(
    db: apsw.Connection, session: int, column: Literal["title", "trashed"], value: str | int | None
) -> None:
    update = f"UPDATE sessions SET {column} = ? WHERE session = ?"  # noqa: S608 - our own names
    db.execute(update, (value, session))
    query = "SELECT id, project, title, created, trashed FROM sessions WHERE session = ?"
    (fields,) = db.execute(query, (session,))
    checksum = row_encoding.row_checksum(*fields)
    db.execute("UPDATE sessions SET seal = ? WHERE session = ?", (checksum, session))


def clean_title(title: str) -> str:
    """One printable line of limited length; the log has the whole original."""
    line = " ".join("".join(c if c.isprintable() else " " for c in title[:1_000]).split())
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"


def title_from(bodies: Iterable[Body], *, titled: bool) -> str | None:
    """The title that these bodies give their session: an explicit one, or the first prompt."""
    title = None
    for body in bodies:
        if isinstance(body, Title):
            title, titled = clean_title(body.title), True
        elif not titled and isinstance(body, Message) and body.role == "user":
            texts = (part.text for part in body.parts if isinstance(part, Text))
            if prompt := clean_title(next(texts, "")):
                title, titled = prompt, True
    return title


def is_titled(db: apsw.Connection, session: int) -> bool:
    ((title,),) = db.execute("SELECT title FROM sessions WHERE session = ?", (session,))
    return bool(title)
