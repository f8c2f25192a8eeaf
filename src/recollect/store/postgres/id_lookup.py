"""Finds sessions and entries by their id, by its beginning or by its end, and lists sessions.

Whole ids and beginnings are found by the key of the table. Ends of eight digits and more, which is
what commands print, have an index; shorter ones are looked for in all ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from recollect.errors import AmbiguousId, UnknownEntry, UnknownSession
from recollect.store.contract import Project, SessionInfo
from recollect.store.ids import is_prefix, normalize_id
from recollect.store.postgres.connections import Connection
from recollect.store.postgres.project_rows import find_project
from recollect.store.postgres.session_states import (
    EntryPlace,
    contains,
    find_tree,
    raw_id,
    read_infos,
    read_state,
)
from recollect.store.postgres.tables import LISTED_LAG
from recollect.store.session_lookup import MAX_CANDIDATES, MIN_END, SHORT_BYTES

IdTable: TypeAlias = Literal["session_trees", "entry_places"]
_BATCH = 5_000  # ids in one statement
_INDEXED_END = 4  # bytes: what the index on ends has
# `listed` is at most so far behind `used`: the page is among these
_AMONG_NEWEST = (
    " AND s.listed >= coalesce((SELECT s.listed FROM sessions s{}"  # noqa: S608 - our own words
    f" ORDER BY s.listed DESC OFFSET %s LIMIT 1) - {LISTED_LAG}, -(1::bigint << 60))"
)
_MAX_MATCHES = 1_000  # entries of other sessions that may share the digits


class SessionFilter(msgspec.Struct, frozen=True, kw_only=True):
    project: Project | None
    trashed: bool
    owner: str | None
    limit: int | None
    before: tuple[int, str] | None


async def list_sessions(db: Connection, wanted: SessionFilter) -> tuple[SessionInfo, ...]:
    where = f" WHERE s.trashed IS {'NOT NULL' if wanted.trashed else 'NULL'}"
    values: list[Any] = []
    if wanted.project is not None:
        key = await find_project(db, wanted.project)
        if key is None:
            return ()
        where, values = where + " AND s.project = %s", [key]
    if wanted.owner is not None:
        where += " AND s.owner = %s"
        values.append(wanted.owner)
    if wanted.before is not None:
        used, last = wanted.before
        where += " AND s.listed <= %s AND (s.used, s.created, s.session) < (%s, %s, %s)"
        values += [used, used, (await session_by_id(db, last)).created, raw_id(last)]
    if wanted.limit:
        where, values = where + _AMONG_NEWEST.format(where), [*values, *values, wanted.limit - 1]
    where += " ORDER BY s.used DESC, s.created DESC, s.session DESC LIMIT %s"
    return await read_infos(db, where, (*values, wanted.limit))


async def session_by_id(db: Connection, given: str) -> SessionInfo:
    """The session with this id, or with the only id that begins or ends like this."""
    found = await _matches(db, "session_trees", given, MAX_CANDIDATES)
    if not found:
        raise UnknownSession(given)
    if len(found) > 1:
        raise await _ambiguous(db, given, [(raw, tree, raw) for raw, tree, *_ in found])
    return await read_session(db, found[0][1], found[0][0])


async def read_session(db: Connection, tree: bytes, session: bytes) -> SessionInfo:
    infos = await read_infos(db, " WHERE s.tree = %s AND s.session = %s", (tree, session))
    if not infos:
        raise UnknownSession(session.hex())
    return infos[0]


async def entry_by_id(db: Connection, given: str, session: str | None) -> tuple[bytes, EntryPlace]:
    """The session that wrote the entry, and where it is."""
    most = MAX_CANDIDATES if session is None else _MAX_MATCHES
    found = [
        (row[0], EntryPlace(*row[1:])) for row in await _matches(db, "entry_places", given, most)
    ]
    if session is not None:
        found = await _of_session(db, found, session)
    owners = [(raw, place.tree, await writer_of(db, place)) for raw, place in found]
    if not owners:
        raise UnknownEntry(given, session)
    if len(owners) > 1:
        raise await _ambiguous(db, given, owners[:MAX_CANDIDATES])
    return owners[0][2], found[0][1]


async def _of_session(
    db: Connection, found: Sequence[tuple[bytes, EntryPlace]], session: str
) -> list[tuple[bytes, EntryPlace]]:
    raw = raw_id(session)
    tree = await find_tree(db, raw)
    if tree is None:
        raise UnknownSession(session)
    return [(each, place) for each, place in found if await contains(db, tree, raw, place)]


async def writer_of(db: Connection, place: EntryPlace) -> bytes:
    query = "SELECT session FROM segments WHERE tree = %s AND segment = %s"
    ((session,),) = await (await db.execute(query, place[:2])).fetchall()
    return bytes(session)


async def _ambiguous(
    db: Connection, given: str, found: Iterable[tuple[bytes, bytes, bytes]]
) -> AmbiguousId:
    """Of ids with the tree and the session of each."""
    titles = {raw.hex(): (await read_state(db, tree, own)).title for raw, tree, own in found}
    return AmbiguousId(given, list(titles), list(titles.values()))


async def _matches(db: Connection, table: IdTable, given: str, most: int) -> list[tuple[Any, ...]]:
    wanted = normalize_id(given)
    if not is_prefix(wanted):
        return []
    low, high = (bytes.fromhex(wanted.ljust(32, digit)) for digit in "0f")
    columns = "id, tree" if table == "session_trees" else "id, tree, segment, n"
    condition = "id >= %s AND id <= %s"
    query = f"SELECT {columns} FROM {table} WHERE {condition} LIMIT %s"  # noqa: S608 - our own names
    found = await (await db.execute(query, (low, high, most), binary=True)).fetchall()
    if len(wanted) == 32 or len(wanted) < MIN_END:
        return list(found)
    ends, given_ends = _end_condition(wanted)
    query = f"SELECT {columns} FROM {table} WHERE {ends} AND NOT ({condition}) LIMIT %s"  # noqa: S608
    values = (*given_ends, low, high, most)
    return found + await (await db.execute(query, values, binary=True)).fetchall()


def _end_condition(wanted: str) -> tuple[str, tuple[Any, ...]]:
    # half a byte in front may be any
    starts = [""] if len(wanted) % 2 == 0 else list("0123456789abcdef")
    ends = [bytes.fromhex(start + wanted) for start in starts]
    size = len(ends[0])
    condition, values = f"substr(id, {17 - size}) = ANY (%s)", (ends,)
    if size > _INDEXED_END and len(wanted) >= 2 * _INDEXED_END:
        return f"substr(id, 13) = %s AND {condition}", (ends[0][-_INDEXED_END:], *values)
    return condition, values


async def short_ids(
    db: Connection, ids: Iterable[str], tables: Sequence[IdTable]
) -> dict[str, str]:
    """The shortest end of each id, of at least 8 digits and an even number, that no other id in
    these tables ends or begins with."""
    short: dict[str, str] = {}
    left = {bytes.fromhex(each) for each in ids}
    for size in range(SHORT_BYTES, 16):
        if not left:
            break
        taken = await _sharing(db, sorted({raw[-size:] for raw in left}), size, tables)
        unique = {raw for raw in left if not taken.get(raw[-size:], set()) - {raw}}
        short |= {raw.hex(): raw[-size:].hex() for raw in unique}
        left -= unique
    return short | {raw.hex(): raw.hex() for raw in left}


async def _sharing(
    db: Connection, ends: list[bytes], size: int, tables: Sequence[IdTable]
) -> dict[bytes, set[bytes]]:
    """Every id that ends or begins with one of these, by it."""
    found: dict[bytes, set[bytes]] = {}
    for start in range(0, len(ends), _BATCH):
        batch = ends[start : start + _BATCH]
        lasts = sorted({end[-_INDEXED_END:] for end in batch})
        bounds = [end.ljust(16, b"\0") for end in batch], [end.ljust(16, b"\xff") for end in batch]
        for table in tables:
            ending = f"SELECT id FROM {table} WHERE substr(id, 13) = ANY (%s)"  # noqa: S608
            beginning = (
                f"SELECT t.id FROM unnest(%s::bytea[], %s::bytea[]) u (low, high)"  # noqa: S608
                f" JOIN {table} t ON t.id >= u.low AND t.id <= u.high"
            )
            for (raw,) in await (await db.execute(ending, (lasts,), binary=True)).fetchall():
                found.setdefault(raw[-size:], set()).add(raw)
            for (raw,) in await (await db.execute(beginning, bounds, binary=True)).fetchall():
                found.setdefault(raw[:size], set()).add(raw)
    return found
