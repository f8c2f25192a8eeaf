"""What the user has asked in a project before, newest first, read from the log page by page.

The log is the only place where prompts are kept: nothing is copied into a second file. Only what
somebody takes is read. Prompts that an agent wrote for its sub-agents are left out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from recollect.entries import Entry, Message, Text
from recollect.errors import RecollectError
from recollect.store.contract import Project, SessionInfo, Store
from recollect.transcripts.subagent_links import PARENT, read_link

RAN = "I ran this command myself:\n$ "  # how a message begins that a command of the user made
SESSIONS, ENTRIES = 20, 200  # that are read at once
LONGEST = 100_000  # characters of a prompt that is offered again


async def project_prompts(store: Store, project: Project) -> AsyncIterator[str]:
    """Each prompt once in a row; sessions by their last use."""
    before: tuple[int, str] | None = None
    last = ""
    while found := await store.sessions(project=project, limit=SESSIONS, before=before):
        for session in found:
            async for prompt in _session_prompts(store, session):
                if prompt != last:
                    last = prompt
                    yield prompt
        before = found[-1].used, found[-1].id


async def _session_prompts(store: Store, session: SessionInfo) -> AsyncIterator[str]:
    end = session.entries
    try:
        if await _is_subagents(store, session):
            return
        while end > 0:
            start = max(0, end - ENTRIES)
            page = await store.page(session.id, start=start, limit=end - start, at=session.head)
            for entry in reversed(page):
                if prompt := prompt_of(entry):
                    yield prompt
            end = start
    except RecollectError:
        return  # a damaged session is `doctor`'s business; its prompts are not offered


async def _is_subagents(store: Store, session: SessionInfo) -> bool:
    first = await store.page(session.id, start=0, limit=2, at=session.head)
    links = (read_link(entry.body) for entry in first)
    return any(link is not None and link.to == PARENT for link in links)


def prompt_of(entry: Entry) -> str:
    """What the user typed, if the entry is a prompt; without the files that it mentioned."""
    body = entry.body
    if not isinstance(body, Message) or body.role != "user" or body.context or not body.parts:
        return ""
    first = body.parts[0]
    text = first.text[:LONGEST].strip() if isinstance(first, Text) else ""
    if text.startswith(RAN):
        return "!" + text.removeprefix(RAN).partition("\n")[0]
    return text
