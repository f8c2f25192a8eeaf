"""The entries of a session while they are appended, by anybody, on any server of the store.

The id of each event is that of the entry before which nothing is missing. A client that comes back
with it, here or on another server, gets what was appended since, once and in order. When the head
was moved to another branch meanwhile, it is first told up to which entry what it has still holds:
`rewound`; then come the entries after that one. An id that the session does not know means that
nothing of it holds. A fork is a session of its own; resuming its stream with an id from before the
fork goes on from there.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from recollect.entries import entry_to_json
from recollect.errors import UnknownEntry
from recollect.server.http.api_call import START
from recollect.server.http.event_stream import StreamEvent
from recollect.store.contract import Store

PAGE = 100  # entries that are read at once
WAIT_SECONDS = 60.0


async def follow_entries(
    store: Store, session: str, after: str
) -> AsyncGenerator[StreamEvent, None]:
    """Events from an entry on; `start`: all entries; empty: only those that will be appended."""
    if after:
        head, count = (None if after == START else after), -1
    else:
        info = await store.session(session)
        head, count = info.head, info.entries
        yield _place_event("head", head, count)
    while True:
        info = await store.session(session)
        if info.head != head:
            shared, last = await _shared(store, session, (head, count), (info.head, info.entries))
            if last != head:
                yield _place_event("rewound", last, shared)
            async for event in _entries(store, session, shared, info.head):
                yield event
            head, count = info.head, info.entries
        await store.wait_for_append(session, head, WAIT_SECONDS)


def _place_event(name: str, head: str | None, count: int) -> StreamEvent:
    return StreamEvent(name, head or START, {"head": head, "entries": count})


async def _entries(
    store: Store, session: str, start: int, head: str | None
) -> AsyncGenerator[StreamEvent, None]:
    if head is None:
        return
    while page := await store.page(session, start=start, limit=PAGE, at=head):
        for position, entry in enumerate(page, start):
            document = {"position": position, "entry": entry_to_json(entry)}
            yield StreamEvent("entry", entry.id, document)
        start += len(page)


async def _shared(
    store: Store, session: str, old: tuple[str | None, int], new: tuple[str | None, int]
) -> tuple[int, str | None]:
    """How many entries two paths have in common, and the last of them. Two paths of a tree differ
    from some position on, so a binary search finds it, however long they are."""
    if old[0] is None or new[0] is None:
        return 0, None
    if old[1] > 0 and await _id_at(store, session, old[1] - 1, new[0]) == old[0]:
        return old[1], old[0]
    low, high, last = 0, new[1], None
    while low < high:
        middle = (low + high) // 2
        found = await _id_at(store, session, middle, new[0])
        if found is not None and found == await _id_at(store, session, middle, old[0]):
            low, last = middle + 1, found
        else:
            high = middle
    return low, last


async def _id_at(store: Store, session: str, position: int, at: str) -> str | None:
    try:
        page = await store.page(session, start=position, limit=1, at=at)
    except UnknownEntry:
        return None
    return page[0].id if page else None
