"""The writes, each a function of the connection inside a transaction that somebody else holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import apsw
import msgspec

from recollect.entries import Body, Entry, Message, Text, Title, check, decode
from recollect.errors import AlreadyExists, BadInput, HeadMoved, UnknownEntry, UnknownSession
from recollect.store import rows
from recollect.store.contract import Project
from recollect.store.ids import is_prefix, new_id, now
from recollect.store.reading import Reader
from recollect.store.schema import LINE_BITS, LINE_FULL

TITLE_CHARACTERS = 80
DRAFT_LIFE = 30_000  # milliseconds without a sign of life after which a draft's writer is gone

_HEAD = f"""
SELECT l.line, l.base, l.depth,
  (SELECT e.key FROM entries e
    WHERE e.key > l.line << {LINE_BITS} AND e.key <= (l.line << {LINE_BITS} | {LINE_FULL})
    ORDER BY e.key DESC LIMIT 1)
FROM lines l WHERE l.session = ? ORDER BY l.line DESC LIMIT 1
"""  # noqa: S608 - the numbers are constants


class Head(NamedTuple):
    """Where a session stands: the key to append after, and the line that appends go to."""

    line: int
    key: int | None
    id: str | None
    hash: bytes
    depth: int  # entries on the path


class New(NamedTuple):
    """An item on its way in: checked, encoded, with the strings that live elsewhere."""

    id: str
    time: int
    body: Body
    json: bytes
    moved: dict[bytes, bytes]


def prepare(items: Sequence[Body | Entry]) -> list[New]:
    prepared, time = [], now()
    for position, item in enumerate(items):
        entry_id, when, body = new_id(), time, item
        if isinstance(item, Entry):
            entry_id, when, body = item.id, item.time, item.body
            if len(entry_id) != 32 or not is_prefix(entry_id):
                raise BadInput(f"item {position}: id {entry_id!r} is not 32 hexadecimal digits")
            if not isinstance(when, int) or not -(2**53) <= when < 2**53:
                raise BadInput(f"item {position}: time {when!r} is not in whole milliseconds")
        json, moved = rows.move_out(check(body, position))
        prepared.append(New(entry_id, when, body, json, moved))  # type: ignore[arg-type]
    return prepared


def session_number(db: apsw.Connection, session: str) -> int:
    for (number,) in db.execute("SELECT session FROM sessions WHERE id = ?", (_raw(session),)):
        return int(number)
    raise UnknownSession(session)


def _raw(entry_id: str) -> bytes:
    return bytes.fromhex(entry_id) if len(entry_id) == 32 and is_prefix(entry_id) else b""


def head_of(db: apsw.Connection, session: int) -> Head:
    ((line, base, depth, top),) = db.execute(_HEAD, (session,))
    key = base if top is None else top
    if key is None:
        return Head(line, None, None, rows.ZERO_HASH, 0)
    ((raw_id, sealed),) = db.execute("SELECT id, hash FROM entries WHERE key = ?", (key,))
    count = depth if top is None else depth + (top & LINE_FULL)
    return Head(line, key, raw_id.hex(), sealed, count)


def append(reader: Reader, session: str, new: list[New], parent: str | None) -> tuple[Entry, ...]:
    db = reader.db
    number = session_number(db, session)
    head = head_of(db, number)
    if head.id != parent:
        raise HeadMoved(session, parent, head.id)
    return append_at(reader, number, head, new)


def append_at(reader: Reader, session: int, head: Head, new: list[New]) -> tuple[Entry, ...]:
    db, pack = reader.db, reader.packer.pack
    line, key = head.line, head.key
    if key is None or key >> LINE_BITS != line:
        key = line << LINE_BITS
    if (key & LINE_FULL) + len(new) > LINE_FULL:
        line = add_line(db, session, head.key, head.depth)
        key = line << LINE_BITS
    entries, stored = [], []
    parent, previous = head.id, head.hash
    for entry_id, time, body, json, moved in new:
        key += 1
        raw_id = bytes.fromhex(entry_id)
        previous = rows.seal(previous, raw_id, time, json)
        stored.append((key, raw_id, time, previous, pack(json, moved=bool(moved))))
        entries.append(Entry(entry_id, parent, time, body))
        parent = entry_id
        for digest, data in moved.items():
            put(db, digest, data)
    try:
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?)", stored)
    except apsw.ConstraintError as error:
        taken = ", ".join(e.id for e in entries if find_key(db, e.id) is not None)
        raise AlreadyExists("an entry", taken) from error
    db.execute("INSERT OR IGNORE INTO pending VALUES (?)", (line,))
    return tuple(entries)


def put(db: apsw.Connection, digest: bytes, data: bytes) -> None:
    if not list(db.execute("SELECT 1 FROM blobs WHERE address = ?", (digest,))):
        db.execute(
            "INSERT INTO blobs(address, size, data) VALUES (?, ?, ?)",
            (digest, len(data), rows.pack_blob(data)),
        )


def find_key(db: apsw.Connection, entry_id: str) -> int | None:
    query = "SELECT key FROM entries WHERE id = ?"
    return next((int(key) for (key,) in db.execute(query, (_raw(entry_id),))), None)


# --- sessions ----------------------------------------------------------------------------------


def create(
    db: apsw.Connection, session: str, project: Project | None, title: str, created: int
) -> int:
    if len(session) != 32 or not is_prefix(session):
        raise BadInput(f"session id {session!r} is not 32 hexadecimal digits")
    owner = None if project is None else save_project(db, project)
    try:
        db.execute(
            "INSERT INTO sessions(id, project, title, created, seal) VALUES (?, ?, ?, ?, x'')",
            (bytes.fromhex(session), owner, clean_title(title), created),
        )
    except apsw.ConstraintError as error:
        raise AlreadyExists("a session", session) from error
    number = db.last_insert_rowid()
    seal_session(db, number)
    return number


def fork(db: apsw.Connection, session: str, at: str | None, new_session: str, title: str) -> None:
    number = session_number(db, session)
    base = head_of(db, number).key if at is None else key_in_session(db, number, session, at)
    ((project, old_title),) = db.execute(
        "SELECT project, title FROM sessions WHERE session = ?", (number,)
    )
    forked = create(db, new_session, None, title or old_title, now())
    db.execute("UPDATE sessions SET project = ? WHERE session = ?", (project, forked))
    seal_session(db, forked)
    add_line(db, forked, base, 0 if base is None else depth_of(db, base))


def rewind(
    db: apsw.Connection, session: str, to: str | None, expected: str | None, *, any_head: bool
) -> None:
    number = session_number(db, session)
    head = head_of(db, number)
    if not any_head and head.id != expected:
        raise HeadMoved(session, expected, head.id)
    base = None if to is None else key_in_session(db, number, session, to)
    if base != head.key:
        add_line(db, number, base, 0 if base is None else depth_of(db, base))


def seal_session(db: apsw.Connection, session: int) -> None:
    seal = session_seal(db, session)
    db.execute("UPDATE sessions SET seal = ? WHERE session = ?", (seal, session))


def session_seal(db: apsw.Connection, session: int) -> bytes:
    ((fields),) = db.execute(
        "SELECT id, project, title, created, trashed FROM sessions WHERE session = ?", (session,)
    )
    return rows.seal_row(*fields)


def add_line(db: apsw.Connection, session: int, base: int | None, depth: int) -> int:
    """A new run of entries that grows from `base`; it becomes the session's newest."""
    ((line,),) = db.execute("SELECT coalesce(max(line), 0) + 1 FROM lines")
    sealed = rows.seal_row(line, session, base, depth)
    db.execute(
        "INSERT INTO lines(line, session, base, depth, seal) VALUES (?, ?, ?, ?, ?)",
        (line, session, base, depth, sealed),
    )
    return int(line)


def key_in_session(db: apsw.Connection, session: int, name: str, entry_id: str) -> int:
    """The key of an entry that this session wrote, or that lies below the place it forked from."""
    key = find_key(db, entry_id)
    own = db.execute("SELECT line FROM lines WHERE session = ?", (session,))
    todo = [] if key is None else [line << LINE_BITS | LINE_FULL for (line,) in own]
    seen: set[int] = set()
    while todo:
        top = todo.pop()
        if key is not None and top >> LINE_BITS == key >> LINE_BITS and key <= top:
            return key
        query = "SELECT base FROM lines WHERE line = ?"
        for (base,) in db.execute(query, (top >> LINE_BITS,)):
            if base is not None and base not in seen:
                seen.add(base)
                todo.append(base)
    raise UnknownEntry(entry_id, name)


def depth_of(db: apsw.Connection, key: int) -> int:
    ((depth,),) = db.execute("SELECT depth FROM lines WHERE line = ?", (key >> LINE_BITS,))
    return int(depth) + (key & LINE_FULL)


def clean_title(title: str) -> str:
    """One line, printable, of bearable length; the log keeps every word of the original."""
    line = " ".join("".join(c if c.isprintable() else " " for c in title[:1_000]).split())
    line = line.encode("utf-8", "replace").decode("utf-8")
    return line if len(line) <= TITLE_CHARACTERS else line[: TITLE_CHARACTERS - 1] + "…"


def title_in(new: list[New], *, titled: bool) -> str | None:
    """The title these items give their session: an explicit one, or the first prompt."""
    title = None
    for item in new:
        if isinstance(item.body, Title):
            title, titled = clean_title(item.body.title), True
        elif not titled and isinstance(item.body, Message) and item.body.role == "user":
            texts = (part.text for part in item.body.parts if isinstance(part, Text))
            if prompt := clean_title(next(texts, "")):
                title, titled = prompt, True
    return title


def set_title(db: apsw.Connection, session: int, title: str) -> None:
    db.execute("UPDATE sessions SET title = ? WHERE session = ?", (title, session))
    seal_session(db, session)


# --- projects ----------------------------------------------------------------------------------


def save_project(db: apsw.Connection, project: Project) -> int:
    """The project's row: found by any of its keys, brought up to date, or made."""
    number = find_project(db, project)
    names = "\n".join(project.names).encode("utf-8", "replace").decode()
    fields = (project.name, project.path, project.inode, names)
    seal = rows.seal_row(*fields)
    if number is None:
        db.execute(
            "INSERT INTO projects(name, path, inode, names, seal) VALUES (?, ?, ?, ?, ?)",
            (*fields, seal),
        )
        number = db.last_insert_rowid()
    else:
        db.execute(
            "UPDATE projects SET name = ?, path = ?, inode = ?, names = ?, seal = ?"
            " WHERE project = ?",
            (*fields, seal, number),
        )
    for key in project.keys:
        db.execute("INSERT OR IGNORE INTO project_keys VALUES (?, ?)", (key, number))
    return number


def find_project(db: apsw.Connection, project: Project) -> int | None:
    for key in project.keys:
        for (number,) in db.execute("SELECT project FROM project_keys WHERE key = ?", (key,)):
            return int(number)
    return _moved_project(db, project)


def _moved_project(db: apsw.Connection, project: Project) -> int | None:
    """A folder without git that was renamed: the same inode, mostly the same names in it, and
    nothing where it used to be. An inode alone would not do: numbers are used again."""
    if not project.inode or not project.names:
        return None
    for number, path, names in db.execute(
        "SELECT project, path, names FROM projects WHERE inode = ?", (project.inode,)
    ):
        before, today = set(names.split("\n")), set(project.names)
        alike = len(before & today) * 2 >= len(before | today)
        if alike and not os.path.lexists(path):
            return int(number)
    return None


# --- drafts ------------------------------------------------------------------------------------


def save_draft(reader: Reader, session: str, draft: str, json: bytes, parent: str | None) -> None:
    db = reader.db
    number = session_number(db, session)
    base = None if parent is None else key_in_session(db, number, session, parent)
    if find_key(db, draft) is not None:
        raise AlreadyExists("an entry", draft)
    packed = reader.packer.pack(json, moved=False)
    db.execute(
        "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?)",
        (bytes.fromhex(draft), number, base, os.getpid(), now(), packed),
    )


def recover_drafts(reader: Reader) -> list[tuple[str, str]]:
    """Turn drafts whose writer is gone into interrupted messages; (session, entry) of each."""
    recovered = []
    for raw_id, session, base, pid, time, body in list(
        reader.db.execute("SELECT * FROM drafts ORDER BY id")
    ):
        if _alive(pid) and now() - time < DRAFT_LIFE:
            continue
        reader.db.execute("DELETE FROM drafts WHERE id = ?", (raw_id,))
        if find_key(reader.db, raw_id.hex()) is None:
            _append_interrupted(reader, session, base, raw_id.hex(), time, body)
            ((name,),) = reader.db.execute("SELECT id FROM sessions WHERE session=?", (session,))
            recovered.append((name.hex(), raw_id.hex()))
    return recovered


def _append_interrupted(
    reader: Reader, session: int, base: int | None, draft: str, time: int, body: bytes
) -> None:
    """At the head if the session still stands where the reply began, else as a branch there."""
    message = decode(reader.packer.unpack(body)[0])
    if isinstance(message, Message):
        message = msgspec.structs.replace(message, finish="interrupted")
    new = prepare([Entry(draft, None, time, message)])
    head = head_of(reader.db, session)
    if head.key == base:
        append_at(reader, session, head, new)
        return
    db = reader.db
    line = add_line(db, session, base, 0 if base is None else depth_of(db, base))
    at = head_of(db, session)._replace(line=line)
    append_at(reader, session, at, new)
    add_line(db, session, head.key, head.depth)  # the head stays where it was


def _alive(pid: int) -> bool:
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
