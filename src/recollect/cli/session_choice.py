"""Which session a command means: an id, or `last`, which is also what no id at all means.

`last` is the session of this project that was used last; sub-agents' sessions do not count.
"""

from __future__ import annotations

from recollect.cli.store_access import current_project
from recollect.errors import NotFound
from recollect.store.contract import SessionInfo, Store
from recollect.store.ids import LAST
from recollect.transcripts.find_session import find_session as find_project_session
from recollect.transcripts.find_session import refuse_trashed, session_by_id


async def find_session(store: Store, given: str) -> SessionInfo:
    """The session with this id, or the latest of this project."""
    return await find_project_session(store, given, current_project())


async def find_writable_session(store: Store, given: str) -> SessionInfo:
    """The same, for a change: a session in the trash is refused."""
    return await refuse_trashed(store, await find_session(store, given))


async def find_trashed_session(store: Store, given: str) -> SessionInfo:
    """The session with this id, or the one of this project that was trashed last."""
    if given != LAST:
        return await session_by_id(store, given)
    trashed = await store.sessions(project=current_project(), trashed=True)
    if not trashed:
        raise NotFound("no session of this project is in the trash")
    return max(trashed, key=lambda session: session.trashed or 0)
