"""The session that a user worked in last: what `last` means, and what `-c` continues."""

from __future__ import annotations

from recollect.store.contract import Project, SessionInfo, Store
from recollect.transcripts.subagent_links import read_link

MAX_SUBAGENT_ENTRIES = 300  # far more than any sub-agent's session has


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
