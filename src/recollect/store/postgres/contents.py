"""Single entries, stored contents and cached token counts.

Contents that belong to no session have a tree of their own: the beginning of their address.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from recollect.entries import Entry, Source
from recollect.errors import UnknownBlob
from recollect.store.postgres.connections import Connection
from recollect.store.postgres.path_reader import (
    open_blob,
    path_length,
    read_chain,
    read_positions,
)
from recollect.store.postgres.session_states import EntryPlace
from recollect.store.token_count_cache import PartCounts, pack_counts, unpack_counts

_SOURCES = (
    "SELECT s.session, s.tree, g.segment FROM sessions s"
    " JOIN segments g ON g.tree = s.tree AND g.session = s.session AND g.base_segment IS NULL"
    " JOIN entries e ON e.tree = g.tree AND e.segment = g.segment AND e.n = 1"
    " WHERE get_byte(s.session, 6) >> 4 = 8 ORDER BY g.segment"
)


async def read_last(db: Connection, place: EntryPlace, count: int) -> tuple[Entry, ...]:
    """The last entries of the path that ends here; damaged ones are marked."""
    runs = await read_chain(db, place)
    stop = path_length(runs)
    return await read_positions(db, place.tree, runs, max(0, stop - count), stop, mark=True)


async def read_entry(db: Connection, place: EntryPlace) -> Entry:
    return (await read_last(db, place, 1))[0]


async def read_sources(db: Connection, known: Mapping[str, Source]) -> dict[str, Source]:
    """The first source of each session whose id was derived: it is the first entry of a segment
    that continues nothing. It never changes, so those that are `known` are not read."""
    found = dict(known)
    for session, tree, segment in await (await db.execute(_SOURCES, binary=True)).fetchall():
        if session.hex() in known:
            continue
        entry = await read_entry(db, EntryPlace(tree, segment, 1))
        if isinstance(entry.body, Source):
            found.setdefault(session.hex(), entry.body)
    return found


async def put_blob(db: Connection, address: bytes, size: int, packed: bytes) -> None:
    await db.execute(
        "INSERT INTO blobs (tree, address, size, data) VALUES (%s, %s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        (address[:16], address, size, packed),
    )


async def read_blob(db: Connection, address: bytes) -> bytes:
    own = "SELECT size, data FROM blobs WHERE tree = %s AND address = %s"
    row = await (await db.execute(own, (address[:16], address), binary=True)).fetchone()
    if row is None:  # a long text of an entry: in the trees that have it
        anywhere = "SELECT size, data FROM blobs WHERE address = %s ORDER BY tree LIMIT 1"
        row = await (await db.execute(anywhere, (address,), binary=True)).fetchone()
    if row is None:
        raise UnknownBlob(address.hex())
    return open_blob(address, *row)


async def list_blobs(db: Connection, after: bytes, limit: int) -> tuple[str, ...]:
    query = "SELECT DISTINCT address FROM blobs WHERE address > %s ORDER BY address LIMIT %s"
    found = await (await db.execute(query, (after, limit), binary=True)).fetchall()
    return tuple(address.hex() for (address,) in found)


async def _trees_of(db: Connection, ids: Iterable[str]) -> dict[bytes, list[bytes]]:
    """The entries that exist, by their tree."""
    query = "SELECT tree, id FROM entry_places WHERE id = ANY (%s)"
    raw = [bytes.fromhex(each) for each in ids]
    by_tree: dict[bytes, list[bytes]] = {}
    for tree, entry in await (await db.execute(query, (raw,), binary=True)).fetchall():
        by_tree.setdefault(tree, []).append(entry)
    return by_tree


async def read_counts(db: Connection, counter: str, ids: Sequence[str]) -> dict[str, PartCounts]:
    query = "SELECT id, data FROM counts WHERE tree = %s AND counter = %s AND id = ANY (%s)"
    found: dict[str, PartCounts] = {}
    for tree, entries in (await _trees_of(db, ids)).items():
        rows = await db.execute(query, (tree, counter, entries), binary=True)
        for entry, data in await rows.fetchall():
            if (counts := unpack_counts(counter, entry, data)) is not None:
                found[entry.hex()] = counts
    return found


async def write_counts(db: Connection, counter: str, counts: Mapping[str, PartCounts]) -> None:
    """Entries that are not in the store are skipped."""
    known = {bytes.fromhex(each): tokens for each, tokens in counts.items()}
    for tree, entries in (await _trees_of(db, counts)).items():
        packed = [pack_counts(counter, entry, known[entry]) for entry in entries]
        async with db.transaction():
            delete = "DELETE FROM counts WHERE tree = %s AND counter = %s AND id = ANY (%s)"
            await db.execute(delete, (tree, counter, entries))
            await db.execute(
                "INSERT INTO counts (tree, counter, id, data) SELECT %s, %s, u.id, u.data"
                " FROM unnest(%s::bytea[], %s::bytea[]) u (id, data) ON CONFLICT DO NOTHING",
                (tree, counter, entries, packed),
            )
