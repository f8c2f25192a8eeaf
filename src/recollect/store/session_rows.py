"""Sessions, their lines and their projects: the rows around the log.

A session's head is not stored. It is the last entry of the session's newest line or, while that
line is empty, the line's base; rewinding and forking add a line, and change nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import apsw
import msgspec

from recollect.entries import Body, Message, Text, Title
from recollect.errors import AlreadyExists, BadInput, UnknownEntry, UnknownSession
from recollect.store import row_encoding
from recollect.store.contract import Project
from recollect.store.ids import is_id, now
from recollect.store.log_reader import segment_bounds
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK

TITLE_CHARACTERS = 80


class Head(msgspec.Struct, frozen=True):
    """Where a session stands: the key to append after, and the line that appends go to."""

    line: int
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
    ((line, base, depth),) = db.execute(
        "SELECT line, base, depth FROM lines WHERE session = ? ORDER BY line DESC LIMIT 1",
        (session,),
    )
    newest = db.execute(
        "SELECT key, id, hash FROM entries WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1",
        segment_bounds(line),
    )
    for key, raw_id, sealed in newest:
        return Head(line, key, raw_id.hex(), sealed, depth + (key & SEGMENT_MASK))
    if base is None:
        return Head(line, None, None, row_encoding.ZERO_HASH, 0)
    ((raw_id, sealed),) = db.execute("SELECT id, hash FROM entries WHERE key = ?", (base,))
    return Head(line, base, raw_id.hex(), sealed, depth)


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
    """A new run of entries that grows from `base`; it becomes the session's newest."""
    if depth is None:
        depth = 0 if base is None else depth_of(db, base)
    ((line,),) = db.execute("SELECT coalesce(max(line), 0) + 1 FROM lines")
    sealed = row_encoding.row_checksum(line, session, base, depth)
    db.execute(
        "INSERT INTO lines(line, session, base, depth, seal) VALUES (?, ?, ?, ?, ?)",
        (line, session, base, depth, sealed),
    )
    return int(line)


def depth_of(db: apsw.Connection, key: int) -> int:
    ((depth,),) = db.execute("SELECT depth FROM lines WHERE line = ?", (key >> SEGMENT_BITS,))
    return int(depth) + (key & SEGMENT_MASK)


def key_in_session(db: apsw.Connection, session: int, name: str, entry_id: str) -> int:
    key = find_key(db, entry_id)
    if key is None or not contains_entry(db, session, key):
        raise UnknownEntry(entry_id, name)
    return key


def contains_entry(db: apsw.Connection, session: int, key: int) -> bool:
    """Whether the session wrote the entry, or it lies below where the session forked off."""
    own = db.execute("SELECT line FROM lines WHERE session = ?", (session,))
    todo = [line << SEGMENT_BITS | SEGMENT_MASK for (line,) in own]
    seen: set[int] = set()
    while todo:
        top = todo.pop()
        if top >> SEGMENT_BITS == key >> SEGMENT_BITS and key <= top:
            return True
        query = "SELECT base FROM lines WHERE line = ?"
        for (base,) in db.execute(query, (top >> SEGMENT_BITS,)):
            if base is not None and base not in seen:
                seen.add(base)
                todo.append(base)
    return False


def set_trashed(db: apsw.Connection, session: str, when: int | None) -> None:
    number = session_number(db, session)
    db.execute("UPDATE sessions SET trashed = ? WHERE session = ?", (when, number))
    _seal(db, number)


def _seal(db: apsw.Connection, session: int) -> None:
    query = "SELECT id, project, title, created, trashed FROM sessions WHERE session = ?"
    ((fields),) = db.execute(query, (session,))
    seal = row_encoding.row_checksum(*fields)
    db.execute("UPDATE sessions SET seal = ? WHERE session = ?", (seal, session))


# --- titles ------------------------------------------------------------------------------------


def clean_title(title: str) -> str:
    """One line, printable, of bearable length; the log keeps every word of the original."""
    line = " ".join("".join(c if c.isprintable() else " " for c in title[:1_000]).split())
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"


def title_from(bodies: Sequence[Body], *, titled: bool) -> str | None:
    """The title these bodies give their session: an explicit one, or the first prompt."""
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


def set_title(db: apsw.Connection, session: int, title: str) -> None:
    db.execute("UPDATE sessions SET title = ? WHERE session = ?", (title, session))
    _seal(db, session)


# --- projects ----------------------------------------------------------------------------------


def save_project(db: apsw.Connection, project: Project) -> int:
    """The project's row: found and brought up to date, or made."""
    number = find_project(db, project)
    git = None if project.git is None else path_to_bytes(project.git)
    names = path_to_bytes("\0".join(project.names))
    fields = (git, path_to_bytes(project.path), path_to_bytes(project.inode), names)
    if number is None:
        db.execute(
            "INSERT INTO projects(git, path, inode, names, seal) VALUES (?, ?, ?, ?, ?)",
            (*fields, row_encoding.row_checksum(*fields)),
        )
        return db.last_insert_rowid()
    if git is None:  # a folder keeps its history when git does not answer for once
        ((git,),) = db.execute("SELECT git FROM projects WHERE project = ?", (number,))
        fields = (git, *fields[1:])
    db.execute(
        "UPDATE projects SET git = ?, path = ?, inode = ?, names = ?, seal = ? WHERE project = ?",
        (*fields, row_encoding.row_checksum(*fields), number),
    )
    return number


def find_project(db: apsw.Connection, project: Project) -> int | None:
    """By git history; else by path, unless another history was seen there; else as moved."""
    git = None if project.git is None else path_to_bytes(project.git)
    known = db.execute("SELECT project FROM projects WHERE git = ?", (git,))
    at_path = db.execute(
        "SELECT project FROM projects WHERE path = ? AND (git IS NULL OR ? IS NULL)"
        " ORDER BY project DESC",
        (path_to_bytes(project.path), git),
    )
    for (number,) in (*known, *at_path):
        return int(number)
    return _moved_project(db, project)


def _moved_project(db: apsw.Connection, project: Project) -> int | None:
    """A folder without git that was renamed: the same inode, mostly the same names in it, and
    nothing where it used to be. An inode alone would not do: numbers are used again."""
    if not project.inode or not project.names:
        return None
    for number, path, names in db.execute(
        "SELECT project, path, names FROM projects WHERE inode = ? AND (git IS NULL OR ? IS NULL)",
        (path_to_bytes(project.inode), project.git and path_to_bytes(project.git)),
    ):
        before, today = set(path_from_bytes(names).split("\0")), set(project.names)
        alike = len(before & today) * 2 >= len(before | today)
        if alike and not os.path.lexists(path_from_bytes(path)):
            return int(number)
    return None


def path_to_bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def path_from_bytes(path: bytes) -> str:
    return path.decode("utf-8", "surrogatepass")
