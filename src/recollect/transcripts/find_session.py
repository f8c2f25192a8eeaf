"""Which session a user means: by its id, by the id it had in another program, or `last`.

`last` is what `-c` continues: the project's session that was used last, not counting sub-agents'.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from recollect.errors import AmbiguousId, Damaged, NotFound, SessionTrashed, UnknownSession
from recollect.store.contract import Project, SessionInfo, Store
from recollect.store.ids import LAST, is_id, normalize_id
from recollect.transcripts.original_files import original_session_id
from recollect.transcripts.subagent_links import read_link

MAX_CANDIDATES = 9  # that an error can list


async def find_session(store: Store, given: str, project: Project) -> SessionInfo:
    """The session with this id, or the latest of the project."""
    if given != LAST:
        return await session_by_id(store, given)
    session = await latest_session(store, project)
    if session is None:
        every = "`recollect sessions --all` lists the sessions of every project"
        raise NotFound(f"there is no session of this project ({project.path}) yet; {every}")
    return session


async def session_by_id(store: Store, given: str) -> SessionInfo:
    """By our id, its beginning or its end, or by the id that it had in the program it was imported
    from, or the beginning of that. A whole id is meant before a part of another."""
    wanted = normalize_id(given)
    if is_id(wanted):
        with suppress(UnknownSession):
            return await store.session(wanted)
    sources = (await store.sources()).items()
    originals = {id_: name for id_, source in sources if (name := original_session_id(source))}
    whole = [id_ for id_, name in originals.items() if name == given.strip()]
    begin = [id_ for id_, name in originals.items() if normalize_id(name).startswith(wanted)]
    parts = begin if wanted else []
    return await _only(store, given, whole or [*await _ours(store, given), *parts])


async def _ours(store: Store, given: str) -> Sequence[str]:
    """The sessions whose own ids begin or end like this."""
    try:
        return ((await store.session(given)).id,)
    except AmbiguousId as vague:
        return vague.candidates
    except UnknownSession:
        return ()


async def _only(store: Store, given: str, found: Sequence[str]) -> SessionInfo:
    found = list(dict.fromkeys(found))
    if not found:
        raise UnknownSession(given)
    infos = [await store.session(id_) for id_ in found[:MAX_CANDIDATES]]
    if len(infos) > 1:
        raise AmbiguousId(given, [info.id for info in infos], [info.title for info in infos])
    return infos[0]


async def refuse_trashed(store: Store, session: SessionInfo) -> SessionInfo:
    """The session, which may be continued and changed; raises if it is in the trash."""
    if session.trashed is None:
        return session
    raise SessionTrashed(session.id, (await store.short_session_ids([session.id]))[session.id])


async def latest_session(store: Store, project: Project | None = None) -> SessionInfo | None:
    """The most recently used session, of a project or of all, that is not a sub-agent's."""
    for session in await store.sessions(project=project):
        if not await is_subagents(store, session):
            return session
    return None


async def is_subagents(store: Store, session: SessionInfo) -> bool:
    """Whether it belongs to a sub-agent: after a crash it can be the most recent one."""
    if session.head is None:
        return False
    try:
        entries = await store.page(session.id, start=0, limit=1, at=session.head)
    except Damaged:  # whoever opens it is told
        return False
    link = read_link(entries[0].body) if entries else None
    return link is not None and link.to == "parent"
