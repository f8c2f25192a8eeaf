"""Sessions over HTTP: list, create, read, rename, trash, restore, fork."""

from __future__ import annotations

from recollect.errors import BadInput
from recollect.server.http.api_call import (
    ApiCall,
    ApiReply,
    NoBody,
    NoQuery,
    tag_of,
)
from recollect.server.http.api_values import (
    ForkPlace,
    SessionChange,
    SessionCreation,
    SessionListQuery,
    SessionPage,
)
from recollect.store.contract import SessionInfo
from recollect.store.ids import is_id


async def list_sessions(call: ApiCall[SessionListQuery, NoBody]) -> ApiReply[SessionPage]:
    """List the sessions, most recently used first."""
    query = call.query
    before = _read_cursor(query.cursor) if query.cursor else None
    found = await call.hub.sessions(
        call.who, limit=query.limit + 1, before=before, trashed=query.trashed
    )
    page = found[: query.limit]
    more = f"{page[-1].used}-{page[-1].id}" if len(found) > query.limit else None
    return ApiReply(SessionPage(sessions=page, next=more))


def _read_cursor(given: str) -> tuple[int, str]:
    used, _, session = given.partition("-")
    if not (used.isascii() and used.isdecimal() and len(used) <= 18 and is_id(session)):
        raise BadInput(f"{given[:60]!r} is no cursor; give the `next` of the page before")
    return int(used), session


async def create_session(call: ApiCall[NoQuery, SessionCreation]) -> ApiReply[SessionInfo]:
    """Create an empty session."""
    return _created(await call.hub.create(call.who, call.body.title))


async def get_session(call: ApiCall[NoQuery, NoBody]) -> ApiReply[SessionInfo]:
    """Get what is known of a session without its entries."""
    return _described(call, await call.session())


def _described(call: ApiCall[NoQuery, NoBody], info: SessionInfo) -> ApiReply[SessionInfo]:
    # a session in the trash is another resource than before, though its head is the same
    tag = tag_of(info) if info.trashed is None else f'"{info.head}-trashed"'
    return ApiReply(info, tag=call.unless_known(tag))


async def rename_session(call: ApiCall[NoQuery, SessionChange]) -> ApiReply[SessionInfo]:
    """Give a session another title."""
    info = await call.writable()
    return _changed(await call.hub.store.rename(info.id, call.body.title))


async def trash_session(call: ApiCall[NoQuery, NoBody]) -> ApiReply[SessionInfo]:
    """Move a session to the trash; nothing is deleted."""
    info = await call.session()
    call.check_expected(info)
    return ApiReply(await call.hub.store.trash(info.id))


async def restore_session(call: ApiCall[NoQuery, NoBody]) -> ApiReply[SessionInfo]:
    """Take a session out of the trash."""
    info = await call.session()
    call.check_expected(info)
    return _changed(await call.hub.store.restore(info.id))


async def fork_session(call: ApiCall[NoQuery, ForkPlace]) -> ApiReply[SessionInfo]:
    """Begin a new session with the same entries, up to the head or to an entry."""
    store, info = call.hub.store, await call.writable()
    at = info.head if call.body.at is None else await call.entry_id(info, call.body.at)
    title = call.body.title or info.title
    call.hub.check_new_session(call.who)
    return _created(await store.fork(info.id, at=at, title=title, owner=call.who.name))


def _created(info: SessionInfo) -> ApiReply[SessionInfo]:
    return ApiReply(info, 201, tag=tag_of(info), location=f"/api/sessions/{info.id}")


def _changed(info: SessionInfo) -> ApiReply[SessionInfo]:
    return ApiReply(info, tag=tag_of(info))
