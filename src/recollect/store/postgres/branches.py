"""Entries that are added inside a transaction: branches beside the head, and recovered drafts."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from recollect.entries import Entry
from recollect.store.log_writer import PreparedEntry
from recollect.store.postgres.append_writer import (
    blob_columns,
    encode_entries,
    entries_after,
)
from recollect.store.postgres.connections import Connection
from recollect.store.postgres.session_states import (
    NewSegment,
    SessionState,
    add_segment,
    find_place,
    place_in_session,
    read_state,
    segment_from,
)

_ENTRIES = (
    "INSERT INTO entries (tree, segment, n, id, time, hash, body)"
    " SELECT %s, %s, u.n, u.id, u.time, u.hash, u.body FROM"
    " unnest(%s::integer[], %s::bytea[], %s::bigint[], %s::bytea[], %s::bytea[])"
    " u (n, id, time, hash, body)"
)
_PLACES = (
    "INSERT INTO entry_places (id, tree, segment, n)"
    " SELECT u.id, %s, %s, u.n FROM unnest(%s::bytea[], %s::integer[]) u (id, n)"
)
_BLOBS = (
    "INSERT INTO blobs (tree, address, size, data) SELECT %s, u.address, u.size, u.data"
    " FROM unnest(%s::bytea[], %s::bigint[], %s::bytea[]) u (address, size, data)"
    " ON CONFLICT DO NOTHING"
)


async def add_branch(
    db: Connection,
    state: SessionState,
    at: str | None,
    new: Sequence[PreparedEntry],
    *,
    again: bool,
) -> tuple[Entry, ...]:
    """In a transaction: append after any entry of the session; the head stays where it is. `again`:
    an attempt before may have been committed."""
    place = None if at is None else await place_in_session(db, state.tree, state.id, at)
    start = await segment_from(db, place)
    if not (again and await _is_stored(db, state, start, new)):
        await _write_segment(db, state, start, new)
    return entries_after(new, at)


async def _is_stored(
    db: Connection, state: SessionState, start: NewSegment, new: Sequence[PreparedEntry]
) -> bool:
    """Whether an attempt before has stored the last entry, with the hash that it is to have."""
    rows = encode_entries(new, 0, start.hash)
    place = await find_place(db, rows.ids[-1])
    if place is None or place.tree != state.tree:
        return False
    return (await segment_from(db, place)).hash == rows.hashes[-1]


async def append_draft(
    db: Connection, tree: bytes, session: bytes, parent: bytes, new: Sequence[PreparedEntry]
) -> None:
    """In a transaction: append at the head if the session has not moved since, else as a branch."""
    state = await read_state(db, tree, session)
    place = await find_place(db, parent) if parent else None
    start = await segment_from(db, place)
    await _write_segment(db, state, start, new, as_head=state.head == parent)


async def _write_segment(
    db: Connection,
    state: SessionState,
    start: NewSegment,
    new: Sequence[PreparedEntry],
    *,
    as_head: bool = False,
) -> None:
    rows = encode_entries(new, 0, start.hash)
    segment = await add_segment(db, state.tree, state.id, start)
    columns = (rows.numbers, rows.ids, rows.times, rows.hashes, rows.bodies)
    await db.execute(_PLACES, (state.tree, segment, rows.ids, rows.numbers))
    await db.execute(_ENTRIES, (state.tree, segment, *columns))
    if rows.blobs:
        await db.execute(_BLOBS, (state.tree, *blob_columns(rows.blobs)))
    head = (state.segment, state.n, state.head, state.hash, state.depth)
    if as_head:
        head = (segment, len(new), rows.ids[-1], rows.hashes[-1], start.depth + len(new))
    moved = await db.execute(
        "UPDATE sessions SET segment = %s, n = %s, head = %s, hash = %s, depth = %s,"
        " version = version + 1, used = greatest(used, %s), listed = greatest(used, %s),"
        " unindexed = true WHERE tree = %s AND session = %s AND version = %s",
        (*head, rows.times[-1], rows.times[-1], state.tree, state.id, state.version),
    )
    if moved.rowcount != 1:
        raise psycopg.errors.SerializationFailure("the session has changed")
