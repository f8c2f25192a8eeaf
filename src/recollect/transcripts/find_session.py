"""Which session a user means: by its id, by the id it had in another program, or `last`.

`last` is what `-c` continues: the project's session that was used last, not counting sub-agents'.
"""

from __future__ import annotations

from contextlib import suppress

from recollect.errors import NotFound, UnknownSession
from recollect.store.contract import Project, SessionInfo, Store
from recollect.store.ids import LAST, derived_id
from recollect.transcripts.subagent_links import read_link

MAX_SUBAGENT_ENTRIES = 300  # far more than any sub-agent's session has


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
    """By our id, or by the whole id that it had in the program it was imported from."""
    try:
        return await store.session(given)
    except UnknownSession:
        # late: only an id that is not ours needs the table of formats
        from recollect.transcripts.format_table import FORMATS

        for row in FORMATS:
            with suppress(UnknownSession):
                return await store.session(derived_id(row.name, given))
        raise


async def latest_session(store: Store, project: Project | None = None) -> SessionInfo | None:
    """The most recently used session, of a project or of all, that is not a sub-agent's."""
    for session in await store.sessions(project=project):
        if not await _is_subagents(store, session):
            return session
    return None


async def _is_subagents(store: Store, session: SessionInfo) -> bool:
    """Whether it belongs to a sub-agent: after a crash it can be the most recent one."""
    if session.entries > MAX_SUBAGENT_ENTRIES:
        return False
    first, *_ = await store.path(session.id) or (None,)
    link = read_link(first.body) if first is not None else None
    return link is not None and link.to == "parent"
