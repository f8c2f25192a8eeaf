"""The rows outside the hash chain: projects, sessions and their segments, each with a checksum.

A project is known by its git history, else by its path, else by its inode and the names in it.
A session's head is not stored. It is the last entry of the session's newest segment or, while that
segment is empty, the segment's base; rewinding and forking add a segment and change nothing else.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, Literal

import apsw
import msgspec

from recollect.entries import Body, Message, Text, Title
from recollect.errors import AlreadyExists, BadInput, Damaged, UnknownEntry, UnknownSession
from recollect.store import row_encoding
from recollect.store.contract import Project, SessionInfo
from recollect.store.ids import check_owner, is_id
from recollect.store.log_reader import segment_bounds
from recollect.store.sql_schema import SEGMENT_BITS, SEGMENT_MASK
from recollect.user_text import find_command, strip_added_text

TITLE_CHARACTERS = 80
_COMMAND_NAME = re.compile(r"/[^\s/]{1,80}")
# By table: its key, and the columns that its checksum (column `seal`) covers.
CHECKSUMMED_COLUMNS = {
    "sessions": ("session", "id, project, title, created, trashed, owner"),
    "lines": ("line", "line, session, base, depth"),
    "projects": ("project", "git, path, inode, names"),
}
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


def checksummed_columns(db: apsw.Connection, table: str) -> str:
    """The columns that the checksums of this file cover; an older format has fewer."""
    there = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}
    return ", ".join(c for c in CHECKSUMMED_COLUMNS[table][1].split(", ") if c in there)


def insert_checksummed(db: apsw.Connection, table: str, *fields: object) -> None:
    columns, marks = CHECKSUMMED_COLUMNS[table][1], ", ".join("?" * len(fields))
    insert = f"INSERT INTO {table}({columns}, seal) VALUES ({marks}, ?)"  # noqa: S608 - our names
    db.execute(insert, (*fields, row_encoding.row_checksum(*fields)))


def update_checksum(db: apsw.Connection, table: str, number: int) -> tuple[Any, ...]:
    """Store the checksum of a row's fields as they are now; returns these."""
    key, columns = CHECKSUMMED_COLUMNS[table]
    query = f"SELECT {columns} FROM {table} WHERE {key} = ?"  # noqa: S608 - our own names
    ((*fields,),) = db.execute(query, (number,))
    update = f"UPDATE {table} SET seal = ? WHERE {key} = ?"  # noqa: S608 - our own names
    db.execute(update, (row_encoding.row_checksum(*fields), number))
    return tuple(fields)


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
    query = "SELECT line, base, depth FROM lines WHERE session = ? ORDER BY line DESC LIMIT 1"
    ((segment, base, depth),) = db.execute(query, (session,))
    query = "SELECT key, id, hash FROM entries WHERE key > ? AND key <= ? ORDER BY key DESC LIMIT 1"
    for key, raw_id, digest in db.execute(query, segment_bounds(segment)):
        return Head(segment, key, raw_id.hex(), digest, depth + (key & SEGMENT_MASK))
    if base is None:
        return Head(segment, None, None, row_encoding.ZERO_HASH, 0)
    ((raw_id, digest),) = db.execute("SELECT id, hash FROM entries WHERE key = ?", (base,))
    return Head(segment, base, raw_id.hex(), digest, depth)


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    owner: str
    created: int


def path_end(db: apsw.Connection, session: str, at: str | None) -> int | None:
    """The key of an entry of the session, or of its head."""
    number = session_number(db, session)
    if at is not None:
        return key_in_session(db, number, session, at)
    head = read_head(db, number)
    _refuse_lost_tail(db, head)
    return head.key


def _refuse_lost_tail(db: apsw.Connection, head: Head) -> None:
    """Raise if the index has seen more entries of the segment than it has: its end is lost."""
    ((indexed,),) = db.execute("SELECT indexed FROM lines WHERE line = ?", (head.segment,))
    key = head.key or 0
    present = key & SEGMENT_MASK if key >> SEGMENT_BITS == head.segment else 0
    if present < indexed:
        raise Damaged(f"the newest {indexed - present} entries of this session are missing")


def create_session(db: apsw.Connection, new: NewSession, project: Project | None) -> None:
    number = None if project is None else save_project(db, project)
    _create(db, new, number, None)


def fork_session(
    db: apsw.Connection, session: str, at: str | None, new: NewSession, *, keep_owner: bool
) -> None:
    number = session_number(db, session)
    base = read_head(db, number).key if at is None else key_in_session(db, number, session, at)
    query = "SELECT project, title, owner FROM sessions WHERE session = ?"
    ((project, title, owner),) = db.execute(query, (number,))
    new = msgspec.structs.replace(new, title=new.title or title)
    if keep_owner:
        new = msgspec.structs.replace(new, owner=owner)
    _create(db, new, project, base)


def adopt_session(db: apsw.Connection, info: SessionInfo, project: Project | None) -> None:
    """Insert the session as another store has it, or bring the row that is here to that."""
    number = None if project is None else _adopt_project(db, project)
    if not list(db.execute("SELECT 1 FROM sessions WHERE id = ?", (_raw(info.id),))):
        base = None if info.forked_from is None else find_key(db, info.forked_from)
        if info.forked_from is not None and base is None:
            raise UnknownEntry(info.forked_from)
        new = NewSession(id=info.id, title=info.title, owner=info.owner, created=info.created)
        _create(db, new, number, base)
    session = session_number(db, info.id)
    update = "UPDATE sessions SET project = ?, title = ?, owner = ?, trashed = ? WHERE session = ?"
    fields = (number, clean_title(info.title), check_owner(info.owner), info.trashed, session)
    db.execute(update, fields)
    update_checksum(db, "sessions", session)


def _create(db: apsw.Connection, new: NewSession, project: int | None, base: int | None) -> None:
    if not is_id(new.id):
        raise BadInput(f"session id {new.id!r} is not 32 hexadecimal digits")
    title, owner = clean_title(new.title), check_owner(new.owner)
    try:
        fields = (bytes.fromhex(new.id), project, title, new.created, None, owner)
        insert_checksummed(db, "sessions", *fields)
    except apsw.ConstraintError as error:
        raise AlreadyExists("a session", new.id) from error
    add_segment(db, db.last_insert_rowid(), base)


def add_segment(
    db: apsw.Connection, session: int, base: int | None, depth: int | None = None
) -> int:
    """Add a segment that continues from `base`; it becomes the session's newest."""
    if depth is None:
        depth = 0 if base is None else depth_of(db, base)
    ((segment,),) = db.execute("SELECT coalesce(max(line), 0) + 1 FROM lines")
    insert_checksummed(db, "lines", segment, session, base, depth)
    return int(segment)


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
    update_checksum(db, "sessions", session)


def clean_title(title: str) -> str:
    """One printable line of limited length; the log has the whole original."""
    line = " ".join("".join(c if c.isprintable() else " " for c in title[:1_000]).split())
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"


def title_from(bodies: Iterable[Body], current: str = "") -> str | None:
    """The title that these bodies give their session: an explicit one, or the first prompt, which
    is what the user typed, not what a program added. The name of a command is the title until
    there is a prompt."""
    title, titled = None, is_final_title(current)
    for body in bodies:
        if isinstance(body, Title):
            title, titled = clean_title(body.title), True
        elif not titled and isinstance(body, Message) and body.role == "user" and not body.context:
            texts = (strip_added_text(part.text) for part in body.parts if isinstance(part, Text))
            if prompt := next(filter(None, map(clean_title, texts)), ""):
                title, titled = prompt, True
        elif not titled and not title and not current and isinstance(body, Message):
            title = clean_title(find_command(body)) or None
    return title


def is_final_title(title: str) -> bool:
    """Whether no prompt replaces the title: there is one, and it is not a command's name."""
    return bool(title) and not _COMMAND_NAME.fullmatch(title)


def title_of(db: apsw.Connection, session: int) -> str:
    ((title,),) = db.execute("SELECT title FROM sessions WHERE session = ?", (session,))
    return str(title)


def save_project(db: apsw.Connection, project: Project) -> int:
    """The number of the project's row, which is updated, or inserted if there is none."""
    number = find_project(db, project)
    fields = _project_fields(project)
    if number is None:
        insert_checksummed(db, "projects", *fields)
        return db.last_insert_rowid()
    # without a git history, git may have failed this time: the known one stays
    changes = "git = coalesce(?, git), path = ?, inode = ?, names = ?"
    db.execute(f"UPDATE projects SET {changes} WHERE project = ?", (*fields, number))  # noqa: S608
    update_checksum(db, "projects", number)
    return number


def project_of(db: apsw.Connection, session: int) -> Project | None:
    query = (
        "SELECT git, path, inode, names FROM projects"
        " WHERE project = (SELECT project FROM sessions WHERE session = ?)"
    )
    for git, path, inode, names in db.execute(query, (session,)):
        return Project(
            path_from_bytes(path),
            None if git is None else path_from_bytes(git),
            path_from_bytes(inode),
            tuple(filter(None, path_from_bytes(names).split("\0"))),
        )
    return None


def _adopt_project(db: apsw.Connection, project: Project) -> int:
    """The row that says exactly this, if there is one: two projects of another store stay two."""
    fields = _project_fields(project)
    same = "git IS ? AND path = ? AND inode = ? AND names = ?"
    for (number,) in db.execute(f"SELECT project FROM projects WHERE {same}", fields):  # noqa: S608
        return int(number)
    if list(db.execute("SELECT 1 FROM projects WHERE git = ?", fields[:1])):
        return save_project(db, project)
    insert_checksummed(db, "projects", *fields)
    return db.last_insert_rowid()


def _project_fields(project: Project) -> tuple[bytes | None, bytes, bytes, bytes]:
    git = None if project.git is None else path_to_bytes(project.git)
    names = path_to_bytes("\0".join(project.names))
    return git, path_to_bytes(project.path), path_to_bytes(project.inode), names


def find_project(db: apsw.Connection, project: Project) -> int | None:
    """Find by git history; else by path, unless it has another history; else as a moved folder."""
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
    """Find a renamed folder without git: the same inode, mostly the same names in it, and nothing
    at its old path. An inode alone is not enough: numbers are reused."""
    if not project.inode or not project.names:
        return None
    for number, path, names in db.execute(
        "SELECT project, path, names FROM projects WHERE inode = ? AND (git IS NULL OR ? IS NULL)",
        (path_to_bytes(project.inode), project.git and path_to_bytes(project.git)),
    ):
        if is_moved_folder(project, path, names):
            return int(number)
    return None


def is_moved_folder(project: Project, path: bytes, names: bytes) -> bool:
    """Whether the folder that was at `path`, with these names in it, is this one."""
    before, current = set(path_from_bytes(names).split("\0")), set(project.names)
    similar = len(before & current) * 2 >= len(before | current)
    return similar and not os.path.lexists(path_from_bytes(path))


def path_to_bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")


def path_from_bytes(path: bytes) -> str:
    return path.decode("utf-8", "surrogatepass")
