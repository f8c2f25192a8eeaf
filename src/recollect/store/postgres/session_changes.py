"""Creates, forks, adopts and rewinds sessions. Each function runs inside a transaction.

`again`: an attempt before may have been committed, and its connection lost; what is there then is
this call's own.
"""

from __future__ import annotations

import msgspec
import psycopg

from recollect.errors import AlreadyExists, BadInput, UnknownEntry
from recollect.store.contract import Project, SessionInfo
from recollect.store.ids import check_owner, is_id
from recollect.store.postgres.connections import Connection
from recollect.store.postgres.project_rows import (
    find_project,
    insert_project,
    project_fields,
    save_project,
)
from recollect.store.postgres.session_states import (
    START,
    EntryPlace,
    NewSegment,
    SessionState,
    find_place,
    find_tree,
    insert_session,
    move_head,
    place_in_session,
    raw_id,
    read_state,
    seal_of,
    segment_from,
    tree_key,
)
from recollect.store.row_encoding import ZERO_HASH
from recollect.store.session_rows import clean_title


class SessionFields(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    title: str
    owner: str | None  # none: that of the session it is forked from
    created: int


async def create(
    db: Connection, new: SessionFields, project: Project | None, *, again: bool
) -> None:
    key = None if project is None else await save_project(db, project)
    await _insert(db, new, key, NewSegment(None), again=again)


async def fork(
    db: Connection, state: SessionState, at: str | None, new: SessionFields, *, again: bool
) -> None:
    place = None
    if at is not None:
        place = await place_in_session(db, state.tree, state.id, at)
    elif state.head:
        place = await find_place(db, state.head)
    new = msgspec.structs.replace(
        new,
        title=new.title or state.title,
        owner=state.owner if new.owner is None else new.owner,
    )
    start = await segment_from(db, place)
    await _insert(db, new, state.project, start, tree=state.tree, again=again)


async def adopt(db: Connection, info: SessionInfo, project: Project | None) -> None:
    """Insert the session as another store has it, or bring the row that is here to that."""
    key = None if project is None else await _adopt_project(db, project)
    tree = await find_tree(db, raw_id(info.id))
    if tree is None:
        place = None if info.forked_from is None else await find_place(db, raw_id(info.forked_from))
        if info.forked_from is not None and place is None:
            raise UnknownEntry(info.forked_from)
        start = await segment_from(db, place)
        new = SessionFields(id=info.id, title=info.title, owner=info.owner, created=info.created)
        await _insert(db, new, key, start, tree=place.tree if place else None, again=False)
        tree = await find_tree(db, raw_id(info.id))
    assert tree is not None
    title, owner = clean_title(info.title), check_owner(info.owner)
    state = await read_state(db, tree, raw_id(info.id))
    seal = seal_of(state.id, title, owner, key, state.created)
    await db.execute(
        "UPDATE sessions SET title = %s, owner = %s, project = %s, trashed = %s, seal = %s,"
        " version = version + 1 WHERE tree = %s AND session = %s",
        (title, owner, key, info.trashed, seal, tree, state.id),
    )


async def _adopt_project(db: Connection, project: Project) -> bytes:
    """A row that says exactly this: two projects of another store stay two."""
    if project.git is not None and await find_project(db, Project("", git=project.git)):
        return await save_project(db, project)
    return await insert_project(db, project_fields(project))


async def _insert(
    db: Connection,
    new: SessionFields,
    project: bytes | None,
    start: NewSegment,
    *,
    tree: bytes | None = None,
    again: bool,
) -> None:
    if not is_id(new.id):
        raise BadInput(f"session id {new.id!r} is not 32 hexadecimal digits")
    raw, title, owner = bytes.fromhex(new.id), clean_title(new.title), check_owner(new.owner or "")
    seal = seal_of(raw, title, owner, project, new.created)
    if (taken := await find_tree(db, raw)) is not None:
        if again and (await read_state(db, taken, raw)).seal == seal:
            return  # the attempt before was committed
        raise AlreadyExists("a session", new.id)
    state = SessionState(
        tree=tree or tree_key(raw),
        id=raw,
        segment=0,
        n=0,
        head=START,
        hash=ZERO_HASH,
        depth=0,
        version=0,
        used=new.created,
        created=new.created,
        trashed=None,
        title=title,
        owner=owner,
        project=project,
        forked=None,
        seal=seal,
    )
    try:
        await insert_session(db, state, start)
    except psycopg.errors.UniqueViolation as error:
        raise AlreadyExists("a session", new.id) from error


async def rewind(db: Connection, state: SessionState, to: str | None) -> None:
    place: EntryPlace | None = None
    if to is not None:
        place = await place_in_session(db, state.tree, state.id, to)
    target = await segment_from(db, place)
    if target.head != state.head and not await move_head(db, state, target):
        raise psycopg.errors.SerializationFailure("the session has changed")
