"""Reads paths of the log and verifies every hash on the way.

A path is a chain of runs, each a part of a segment. Runs know their depth, so a window or a page is
a range of positions: only its entries are read, and the one before, whose hash the first one needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from recollect.entries import Body, Entry, decode
from recollect.errors import BadInput, Damaged, UnknownBlob
from recollect.store.log_reader import EntryRow, verify_rows
from recollect.store.postgres.connections import Connection
from recollect.store.postgres.session_states import EntryPlace
from recollect.store.row_encoding import (
    BodyPacker,
    content_address,
    names_blobs,
    restore_blobs,
    unpack_blob,
)

LONG_PATH = 200  # entries; longer ones are decoded in a thread
_CHAIN = """
WITH RECURSIVE chain (segment, depth, top, base_segment, base_n, level) AS (
  SELECT segment, depth, %(n)s::integer, base_segment, base_n, 0 FROM segments
    WHERE tree = %(tree)s AND segment = %(segment)s
  UNION ALL SELECT g.segment, g.depth, c.base_n, g.base_segment, g.base_n, c.level + 1
    FROM chain c JOIN segments g ON g.tree = %(tree)s AND g.segment = c.base_segment)
SELECT segment, depth, top FROM chain ORDER BY level DESC
"""
_RANGE = (
    "SELECT n, id, time, hash, body FROM entries"
    " WHERE tree = %s AND segment = %s AND n > %s AND n <= %s ORDER BY n"
)


class SegmentRun(NamedTuple):
    """The entries 1 to `top` of a segment, of which the first has the position `depth`."""

    segment: int
    depth: int
    top: int


def new_packer() -> BodyPacker:
    return BodyPacker({}, lambda _: None)


async def read_chain(db: Connection, end: EntryPlace) -> tuple[SegmentRun, ...]:
    """The runs of the path that ends here, oldest first."""
    values = {"tree": end.tree, "segment": end.segment, "n": end.n}
    runs = await (await db.execute(_CHAIN, values)).fetchall()
    if not runs or runs[0][1] != 0:
        raise Damaged(f"segment {end.segment} of the log, or one that it continues, is missing")
    return tuple(SegmentRun(*run) for run in runs)


def path_length(runs: Sequence[SegmentRun]) -> int:
    return runs[-1].depth + runs[-1].top


async def read_positions(
    db: Connection, tree: bytes, runs: Sequence[SegmentRun], start: int, stop: int, *, mark: bool
) -> tuple[Entry, ...]:
    """The entries of a path from position `start` up to `stop`, counted from 0."""
    stop = min(stop, path_length(runs))
    if start >= stop:
        return ()
    rows: list[EntryRow] = []
    first = max(start - 1, 0)
    for segment, depth, top in runs:
        low, high = max(first - depth, 0), min(stop - depth, top)
        if low < high:
            rows += await _read_run(db, tree, segment, low, high)
    before, rows = (rows[0], rows[1:]) if start else (None, rows)
    return await decode_rows(db, tree, rows, before, mark=mark)


async def _read_run(
    db: Connection, tree: bytes, segment: int, low: int, high: int
) -> list[EntryRow]:
    cursor = await db.execute(_RANGE, (tree, segment, low, high), binary=True)
    rows: list[EntryRow] = await cursor.fetchall()
    if len(rows) != high - low or rows[0][0] != low + 1 or rows[-1][0] != high:
        present = {row[0] for row in rows}
        missing = next(n for n in range(low + 1, high + 1) if n not in present)
        raise Damaged(f"entry {missing} of segment {segment} is missing")
    return rows


async def read_segment(
    db: Connection,
    tree: bytes,
    segment: int,
    *,
    mark: bool,
    after: int = 0,
    limit: int | None = None,
) -> tuple[Entry, ...]:
    """Every entry written in a segment, whether or not a path still includes it; of those `after`
    a number, and at most `limit`."""
    query = "SELECT max(n) FROM entries WHERE tree = %s AND segment = %s"
    ((top,),) = await (await db.execute(query, (tree, segment))).fetchall()
    if top is None:
        return ()
    runs = await read_chain(db, EntryPlace(tree, segment, top))
    start, stop = runs[-1].depth + after, path_length(runs)
    stop = stop if limit is None else min(stop, start + limit)
    return await read_positions(db, tree, runs, start, stop, mark=mark)


async def decode_rows(
    db: Connection, tree: bytes, rows: list[EntryRow], before: EntryRow | None, *, mark: bool
) -> tuple[Entry, ...]:
    packer = new_packer()
    blobs = await read_blobs(db, tree, _find_blobs(packer, rows))

    def fetch(address: bytes) -> bytes:
        if (found := blobs.get(address)) is None:
            raise UnknownBlob(address.hex())
        return open_blob(address, *found)

    def verify() -> tuple[Entry, ...]:
        return verify_rows(rows, before, packer.unpack, fetch, mark=mark)

    long = len(rows) > LONG_PATH or sum(len(row[4]) for row in rows) > 1_000_000
    return await asyncio.to_thread(verify) if long else verify()


def _find_blobs(packer: BodyPacker, rows: Iterable[EntryRow]) -> set[bytes]:
    """The addresses of the texts that these rows keep elsewhere."""
    found: set[bytes] = set()

    def note(address: bytes) -> bytes:
        found.add(address)
        return b""

    for row in rows:
        if names_blobs(row[4]):
            try:
                restore_blobs(packer.unpack(row[4])[0], note)
            except (Damaged, ValueError):
                continue  # reading the row reports it
    return found


async def read_blobs(
    db: Connection, tree: bytes, addresses: set[bytes]
) -> dict[bytes, tuple[int, bytes]]:
    if not addresses:
        return {}
    query = "SELECT address, size, data FROM blobs WHERE tree = %s AND address = ANY (%s)"
    rows = await (await db.execute(query, (tree, list(addresses)), binary=True)).fetchall()
    return {address: (size, data) for address, size, data in rows}


def open_blob(address: bytes, size: int, data: bytes) -> bytes:
    content = unpack_blob(data, size)
    if content_address(content) != address:
        raise Damaged(f"content {address.hex()} is not what was stored")
    return content


async def decode_bodies(db: Connection, tree: bytes, stored: Sequence[bytes]) -> list[Body | None]:
    """The bodies without their hashes being verified; none for one that cannot be read."""
    rows: list[EntryRow] = [(0, b"", 0, b"", body) for body in stored]
    packer = new_packer()
    blobs = await read_blobs(db, tree, _find_blobs(packer, rows))

    def body_of(packed: bytes) -> Body | None:
        try:
            json, moved = packer.unpack(packed)
            if moved:
                json = restore_blobs(json, lambda address: open_blob(address, *blobs[address]))
            return decode(json)
        except (Damaged, BadInput, LookupError, ValueError):
            return None  # reading its session reports the damage

    return await asyncio.to_thread(lambda: [body_of(packed) for packed in stored])
