"""Entries over HTTP: by position, by id, and as they are appended."""

from __future__ import annotations

from recollect.entries import Entry, Message, entry_to_json
from recollect.errors import BadInput
from recollect.server.http.api_call import ApiCall, ApiReply, NoBody, NoQuery, tag_of
from recollect.server.http.api_values import (
    EntryDetail,
    EntryListQuery,
    EntryPage,
    EntryStreamQuery,
    PlacedEntry,
)
from recollect.server.http.entry_stream import follow_entries
from recollect.server.http.event_stream import EventStream
from recollect.store.contract import Store

MAX_SCANNED = 5_000  # entries that one request with a filter looks at
_CHUNK = 500
MAX_NAME = 64  # characters of an event id that can be one of ours


async def list_entries(call: ApiCall[EntryListQuery, NoBody]) -> ApiReply[EntryPage]:
    """List the entries on the path to the head, by position; with a filter, those that match.

    `next` is the position to go on at. A request with a filter looks at a bounded number of
    entries, so a page can be short, or empty, and still have a `next`."""
    query, info, store = call.query, await call.session(), call.hub.store
    head, tag, start = info.head, call.unless_known(tag_of(info)), query.start
    if query.at:
        if start < 0:
            raise BadInput("a negative `start` counts from the head; it goes without `at`")
        head = await call.entry_id(info, query.at)
    elif start < 0:
        start = max(0, info.entries + start)
    entries, following = await _collect(store, info.id, head, start, query)
    return ApiReply(
        EntryPage(session=info.id, head=head, entries=tuple(entries), next=following), tag=tag
    )


async def _collect(
    store: Store, session: str, head: str | None, start: int, query: EntryListQuery
) -> tuple[list[PlacedEntry], int | None]:
    """Entries that match, and the position of the next one to look at."""
    found: list[PlacedEntry] = []
    size = _CHUNK if query.kind or query.role else query.limit
    position = start
    while head is not None and position < start + MAX_SCANNED:
        page = await store.page(session, start=position, limit=size + 1, at=head)
        for entry in page[:size]:
            if len(found) == query.limit:
                return found, position
            if _matches(entry, query):
                found.append(PlacedEntry(position=position, entry=entry_to_json(entry)))
            position += 1
        if len(page) <= size:
            return found, None
        if len(found) == query.limit:
            break
    return found, position if head is not None else None


def _matches(entry: Entry, query: EntryListQuery) -> bool:
    body = entry.body
    if query.kind and body.__struct_config__.tag != query.kind:
        return False
    return not query.role or (isinstance(body, Message) and body.role == query.role)


async def get_entry(call: ApiCall[NoQuery, NoBody]) -> ApiReply[EntryDetail]:
    """Get an entry, with the other half of its exchange."""
    info, store = await call.session(), call.hub.store
    _, entry = await store.entry(call.path("entry"), session=info.id)
    tag = call.unless_known(f'"{entry.id}"')
    beside = tuple(entry_to_json(one) for one in await store.counterparts(entry))
    return ApiReply(EntryDetail(entry=entry_to_json(entry), beside=beside), tag=tag)


async def stream_entries(call: ApiCall[EntryStreamQuery, NoBody]) -> EventStream:
    """Stream entries as they are appended, by anybody; `Last-Event-ID` resumes.

    Events: `head` (where the stream begins), `entry` (`position`, `entry`), `rewound` (`head`,
    `entries`: what still holds). The id of an event is that of an entry, or `start`."""
    info = await call.session()
    after = call.header("last-event-id") or call.query.after
    if len(after) > MAX_NAME or not after.isascii():
        raise BadInput(f"{after[:60]!r} is no entry; give its id, or `start`")
    return call.stream(follow_entries(call.hub.store, info.id, after))
