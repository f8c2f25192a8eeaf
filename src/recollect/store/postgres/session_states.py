"""The rows of sessions and segments: reading them, creating, forking and rewinding sessions.

A session's row says where its head is. A segment is an unbroken run of entries, keyed
`(tree, segment, n)`, n from 1 without gaps, that continues from its base, an entry of another
segment of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
import psycopg

from recollect.errors import UnknownEntry, UnknownSession
from recollect.store.contract import SessionInfo
from recollect.store.ids import is_id
from recollect.store.postgres.connections import Connection
from recollect.store.row_encoding import ZERO_HASH, row_checksum
from recollect.store.session_rows import path_from_bytes

START = b""  # the head of a session without entries


class EntryPlace(NamedTuple):
    tree: bytes
    segment: int
    n: int


class SessionState(msgspec.Struct, frozen=True):
    """A session's row."""

    tree: bytes
    id: bytes
    segment: int
    n: int
    head: bytes
    hash: bytes
    depth: int
    version: int
    used: int
    created: int
    trashed: int | None
    title: str
    owner: str
    project: bytes | None
    forked: bytes | None
    seal: bytes

    def info(self, path: bytes | None) -> SessionInfo:
        return SessionInfo(
            id=self.id.hex(),
            title=self.title,
            head=self.head.hex() or None,
            entries=self.depth,
            created=self.created,
            used=self.used,
            project=None if path is None else path_from_bytes(path),
            trashed=self.trashed,
            forked_from=None if self.forked is None else self.forked.hex(),
            owner=self.owner,
        )


class NewSegment(NamedTuple):
    """Where a segment continues from; `n` 0 and an empty head: from nothing."""

    base: EntryPlace | None
    head: bytes = START
    hash: bytes = ZERO_HASH
    depth: int = 0


_FIELDS = (
    "s.tree, s.session, s.segment, s.n, s.head, s.hash, s.depth, s.version, s.used, s.created,"
    " s.trashed, s.title, s.owner, s.project, s.forked, s.seal"
)
_STATE = f"SELECT {_FIELDS} FROM sessions s WHERE s.tree = %s AND s.session = %s"  # noqa: S608
LISTED = f"SELECT {_FIELDS}, p.path FROM sessions s LEFT JOIN projects p ON p.project = s.project"  # noqa: S608
# what a session stands on: segments before its own, and up to which entry
BASES = """
WITH RECURSIVE bases (segment, n) AS (
  SELECT base_segment, base_n FROM segments
    WHERE tree = %(tree)s AND session = %(session)s AND base_segment IS NOT NULL
  UNION SELECT g.base_segment, g.base_n FROM bases b
    JOIN segments g ON g.tree = %(tree)s AND g.segment = b.segment
    WHERE g.base_segment IS NOT NULL)
"""
_CONTAINS = f"""{BASES}
SELECT 1 FROM segments
  WHERE tree = %(tree)s AND segment = %(segment)s AND session = %(session)s
UNION ALL SELECT 1 FROM bases WHERE segment = %(segment)s AND n >= %(n)s LIMIT 1
"""  # noqa: S608


def raw_id(given: str) -> bytes:
    return bytes.fromhex(given) if is_id(given) else b""


def tree_key(session: bytes) -> bytes:
    """The key of the tree that begins with this session: new ones are spread evenly."""
    return blake2b(session, digest_size=16, person=b"recollect-tree").digest()


def seal_of(session: bytes, title: str, owner: str, project: bytes | None, created: int) -> bytes:
    return row_checksum(session, title, owner, project, created)


async def find_tree(db: Connection, session: bytes) -> bytes | None:
    query = "SELECT tree FROM session_trees WHERE id = %s"
    found = await (await db.execute(query, (session,))).fetchone()
    return None if found is None else found[0]


async def read_state(db: Connection, tree: bytes, session: bytes) -> SessionState:
    found = await (await db.execute(_STATE, (tree, session), binary=True)).fetchone()
    if found is None:
        raise UnknownSession(session.hex())
    return SessionState(*found)


async def read_infos(db: Connection, where: str, values: Iterable[Any]) -> tuple[SessionInfo, ...]:
    """`where` is a condition on sessions `s` that names their tree, or a whole listing."""
    rows = await (await db.execute(LISTED + where, tuple(values), binary=True)).fetchall()
    return tuple(SessionState(*row[:-1]).info(row[-1]) for row in rows)


async def find_place(db: Connection, entry: bytes) -> EntryPlace | None:
    query = "SELECT tree, segment, n FROM entry_places WHERE id = %s"
    found = await (await db.execute(query, (entry,), binary=True)).fetchone()
    return None if found is None else EntryPlace(*found)


async def contains(db: Connection, tree: bytes, session: bytes, place: EntryPlace) -> bool:
    """Whether the session wrote the entry or forked from a path that includes it."""
    if place.tree != tree:
        return False
    values = {"tree": tree, "session": session, "segment": place.segment, "n": place.n}
    return await (await db.execute(_CONTAINS, values)).fetchone() is not None


async def place_in_session(db: Connection, tree: bytes, session: bytes, entry: str) -> EntryPlace:
    place = await find_place(db, raw_id(entry))
    if place is None or not await contains(db, tree, session, place):
        raise UnknownEntry(entry, session.hex())
    return place


async def segment_from(db: Connection, place: EntryPlace | None) -> NewSegment:
    """A segment that continues from this entry."""
    if place is None:
        return NewSegment(None)
    query = (
        "SELECT e.id, e.hash, g.depth + e.n FROM entries e"
        " JOIN segments g ON g.tree = e.tree AND g.segment = e.segment"
        " WHERE e.tree = %s AND e.segment = %s AND e.n = %s"
    )
    row = await (await db.execute(query, tuple(place), binary=True)).fetchone()
    if row is None:
        raise UnknownEntry(None)
    return NewSegment(place, *row)


async def add_segment(db: Connection, tree: bytes, session: bytes, new: NewSegment) -> int:
    """The number of the segment that was added; of two that race for it, one is run again."""
    query = "SELECT coalesce(max(segment), 0) + 1 FROM segments WHERE tree = %s"
    ((number,),) = await (await db.execute(query, (tree,))).fetchall()
    base = (None, None) if new.base is None else (new.base.segment, new.base.n)
    seal = row_checksum(tree, number, session, *base, new.depth)
    try:
        await db.execute(
            "INSERT INTO segments (tree, segment, session, base_segment, base_n, depth, seal)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            (tree, number, session, *base, new.depth, seal),
        )
    except psycopg.errors.UniqueViolation as error:
        raise psycopg.errors.SerializationFailure("another segment was added") from error
    return int(number)


async def insert_session(db: Connection, new: SessionState, start: NewSegment) -> None:
    """In a transaction: the session, the way to its tree, and its first segment. Raises
    `UniqueViolation` for an id that is taken."""
    await db.execute("INSERT INTO session_trees (id, tree) VALUES (%s, %s)", (new.id, new.tree))
    await db.execute(
        "INSERT INTO sessions (tree, session, segment, n, head, hash, depth, version, used,"
        " created, listed, trashed, title, owner, project, forked, unindexed, seal) VALUES"
        " (%s, %s, 0, 0, %s, %s, %s, 0, %s, %s, %s, %s, %s, %s, %s, %s, false, %s)",
        (
            *(new.tree, new.id, start.head, start.hash, start.depth),
            *(new.used, new.created, new.used),
            *(new.trashed, new.title, new.owner, new.project, start.head or None, new.seal),
        ),
    )
    number = await add_segment(db, new.tree, new.id, start)
    await db.execute(
        "UPDATE sessions SET segment = %s WHERE tree = %s AND session = %s",
        (number, new.tree, new.id),
    )


async def move_head(db: Connection, state: SessionState, to: NewSegment) -> bool:
    """In a transaction: continue from another entry, unless the session changed meanwhile."""
    number = await add_segment(db, state.tree, state.id, to)
    moved = await db.execute(
        "UPDATE sessions SET segment = %s, n = 0, head = %s, hash = %s, depth = %s,"
        " version = version + 1 WHERE tree = %s AND session = %s AND version = %s",
        (number, to.head, to.hash, to.depth, state.tree, state.id, state.version),
    )
    return moved.rowcount == 1
