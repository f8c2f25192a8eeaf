"""Which session a command means: an id, or `last`, which is also what no id at all means.

`last` is the session of this project that was used last; sub-agents' sessions do not count.
"""

from __future__ import annotations

from recollect.cli.store_access import current_project
from recollect.errors import NotFound
from recollect.store.contract import SessionInfo, Store
from recollect.store.ids import LAST
from recollect.transcripts.latest_session import latest_session


async def find_session(store: Store, given: str) -> SessionInfo:
    """The session with this id, or the latest of this project."""
    if given != LAST:
        return await store.session(given)
    project = current_project()
    session = await latest_session(store, project)
    if session is None:
        every = "`recollect sessions --all` lists the sessions of every project"
        raise NotFound(f"there is no session of this project ({project.path}) yet; {every}")
    return session


async def find_trashed_session(store: Store, given: str) -> SessionInfo:
    """The session with this id, or the one of this project that was trashed last."""
    if given != LAST:
        return await store.session(given)
    trashed = await store.sessions(project=current_project(), trashed=True)
    if not trashed:
        raise NotFound("no session of this project is in the trash")
    return max(trashed, key=lambda session: session.trashed or 0)
