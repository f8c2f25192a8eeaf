"""Every entry of a session in the order in which they were written, in pages, so that a session of
any size can be read without holding it, or the event loop, for long.

Those before a fork are another session's, and come first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from recollect.entries import Entry
from recollect.store.contract import SessionInfo, Store

PAGE = 100  # entries; looking at them takes a few milliseconds


async def timeline_pages(
    store: Store, session: SessionInfo, *, limit: int = PAGE
) -> AsyncIterator[tuple[Entry, ...]]:
    if session.forked_from is not None:
        start, page = 0, await _inherited(store, session, 0, limit)
        while page:
            yield page
            start += len(page)
            page = await _inherited(store, session, start, limit)
    after: str | None = None
    while page := await store.tree_page(session.id, limit=limit, after=after):
        yield page
        after = page[-1].id


async def _inherited(
    store: Store, session: SessionInfo, start: int, limit: int
) -> tuple[Entry, ...]:
    return await store.page(session.id, start=start, limit=limit, at=session.forked_from)
