"""Appends entries: one statement each, those that wait together in one transaction.

A statement moves the head, `UPDATE … WHERE head = expected`, and inserts the entries only if that
changed a row; so it does all or nothing, whatever happens to others in its transaction, and its row
count tells `HeadMoved`. The state of a session is cached; a stale one changes no row and is read
again. If the connection is lost, the ids of the entries tell whether they were stored.

On a database that spreads its tables over machines, the places of the entries have a statement of
their own: they are keyed by something else than the tree.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import psycopg

from recollect.entries import Entry
from recollect.errors import AlreadyExists, Damaged, HeadMoved, RecollectError, UnknownSession
from recollect.store.log_writer import PreparedEntry
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.path_reader import new_packer
from recollect.store.postgres.session_states import (
    EntryPlace,
    SessionState,
    find_place,
    find_tree,
    raw_id,
    read_state,
    seal_of,
)
from recollect.store.postgres.tables import LISTED_LAG
from recollect.store.row_encoding import BodyPacker, entry_hash, pack_blob
from recollect.store.session_rows import title_from

MAX_STATES = 10_000  # sessions whose state is cached
MAX_GROUP = 64  # appends in one transaction
MAX_WRITERS = 2  # transactions at a time, so that one that waits does not stop the others

_MOVE = f"""
WITH moved AS (
  UPDATE sessions SET n = %b, head = %b, hash = %b, depth = %b, used = greatest(used, %b),
    listed = CASE WHEN %b > listed + {LISTED_LAG} THEN %b ELSE listed END,
    title = %s, seal = %b, version = version + 1, unindexed = true
  WHERE tree = %b AND session = %b AND segment = %b AND head = %b AND seal = %b
  RETURNING tree, segment)"""  # noqa: S608 - the number is a constant
_PLACE = """, places AS (
  INSERT INTO entry_places (id, tree, segment, n) SELECT %b, m.tree, m.segment, %b FROM moved m)"""
_PLACES = """, places AS (
  INSERT INTO entry_places (id, tree, segment, n)
  SELECT u.id, m.tree, m.segment, u.n FROM moved m, unnest(%b::bytea[], %b::integer[]) u (id, n))"""
_ENTRY = """
INSERT INTO entries (tree, segment, n, id, time, hash, body)
SELECT m.tree, m.segment, %b, %b, %b, %b, %b FROM moved m"""
_ENTRIES = """
INSERT INTO entries (tree, segment, n, id, time, hash, body)
SELECT m.tree, m.segment, u.n, u.id, u.time, u.hash, u.body FROM moved m,
  unnest(%b::integer[], %b::bytea[], %b::bigint[], %b::bytea[], %b::bytea[])
  u (n, id, time, hash, body)"""
_APPEND_ONE = _MOVE + _PLACE + _ENTRY
_APPEND = _MOVE + _PLACES + _ENTRIES
_APPEND_ENTRIES = _MOVE + _ENTRIES
# these change nothing unless the append before them, in their transaction, moved the head
_OF_MOVED = " FROM sessions s, {} WHERE s.tree = %s AND s.session = %s AND s.head = %s"
_APPEND_PLACES = (
    "INSERT INTO entry_places (id, tree, segment, n) SELECT u.id, s.tree, s.segment, u.n"
    + _OF_MOVED.format("unnest(%b::bytea[], %b::integer[]) u (id, n)")
)
_APPEND_BLOBS = (
    "INSERT INTO blobs (tree, address, size, data) SELECT s.tree, u.address, u.size, u.data"
    + _OF_MOVED.format("unnest(%b::bytea[], %b::bigint[], %b::bytea[]) u (address, size, data)")
    + " ON CONFLICT DO NOTHING"
)
_DELETE_DRAFTS = (
    "DELETE FROM drafts WHERE tree = %s AND id = ANY (%s) AND EXISTS (SELECT 1 FROM sessions s"
    " WHERE s.tree = %s AND s.session = %s AND s.head = %s)"
)
Statement = tuple[str, tuple[Any, ...]]


class EncodedEntries(NamedTuple):
    """Rows to insert: a column each, and the blobs by address."""

    ids: list[bytes]
    numbers: list[int]
    times: list[int]
    hashes: list[bytes]
    bodies: list[bytes]
    blobs: dict[bytes, bytes]


class _Append(msgspec.Struct, eq=False):
    """An append that waits for its transaction; `moved` says whether it took place."""

    statements: list[Statement]
    session: bytes
    done: asyncio.Future[bool]
    queued: float  # seconds of the monotonic clock


def encode_entries(
    new: Sequence[PreparedEntry], n: int, previous: bytes, packer: BodyPacker | None = None
) -> EncodedEntries:
    """The rows of entries that follow entry `n` of a segment, with the hash `previous`."""
    rows = EncodedEntries([], [], [], [], [], {})
    pack = (packer or new_packer()).pack
    for number, (entry_id, created, _, json, moved) in enumerate(new, n + 1):
        raw = bytes.fromhex(entry_id)
        previous = entry_hash(previous, raw, created, json)
        rows.ids.append(raw)
        rows.numbers.append(number)
        rows.times.append(created)
        rows.hashes.append(previous)
        rows.bodies.append(pack(json, moved=bool(moved)))
        rows.blobs.update(moved)
    return rows


def blob_columns(blobs: dict[bytes, bytes]) -> tuple[list[bytes], list[int], list[bytes]]:
    """In the order of their addresses: two transactions that store the same never deadlock."""
    pairs = sorted(blobs.items())
    return [a for a, _ in pairs], [len(d) for _, d in pairs], [pack_blob(d) for _, d in pairs]


class AppendWriter:
    def __init__(self, database: Database, *, spread: bool) -> None:
        self._database, self._spread = database, spread
        self.drafts: set[bytes] = set()  # replies in progress that this store keeps
        self._states: OrderedDict[bytes, SessionState] = OrderedDict()
        self._unindexed: set[tuple[bytes, bytes]] = set()
        self._packer = new_packer()
        self._queue: list[_Append] = []
        self._writers: set[asyncio.Task[None]] = set()
        self._active = 0  # writers at work

    async def state(self, db: Connection, session: str) -> SessionState:
        """The session's row as it is now."""
        raw = raw_id(session)
        cached = self._states.get(raw)
        tree = cached.tree if cached else await find_tree(db, raw)
        if tree is None:
            raise UnknownSession(session)
        state = await read_state(db, tree, raw)
        self._remember(state)
        return state

    def _remember(self, state: SessionState) -> None:
        self._states[state.id] = state
        self._states.move_to_end(state.id)
        if len(self._states) > MAX_STATES:
            self._states.popitem(last=False)

    def take_unindexed(self) -> set[tuple[bytes, bytes]]:
        """The trees and ids of the sessions that were appended to since the last call."""
        taken, self._unindexed = self._unindexed, set()
        return taken

    async def append(
        self, session: str, new: Sequence[PreparedEntry], parent: str | None
    ) -> tuple[Entry, ...]:
        expected = b"" if parent is None else raw_id(parent)
        state = self._states.get(raw_id(session))
        while True:
            if state is None or state.head != expected:
                state = await self._database.run(lambda db: self.state(db, session))
            if state.head != expected or (parent is not None and not expected):
                raise HeadMoved(session, parent, state.head.hex() or None)
            rows = encode_entries(new, state.n, state.hash, self._packer)
            after = _moved_state(state, new, rows)
            if await self._write(state, after, rows):
                self._remember(after)
                self._unindexed.add((state.tree, state.id))
                self.drafts.difference_update(rows.ids)
                return entries_after(new, parent)
            state = None

    async def _write(self, state: SessionState, after: SessionState, rows: EncodedEntries) -> bool:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        pending = _Append(self._statements(state, after, rows), state.id, done, time.monotonic())
        self._queue.append(pending)
        try:
            if not self._active:
                await self._write_at_once()
            elif self._active < MAX_WRITERS:
                self._start_writer()
            return await done
        except psycopg.errors.UniqueViolation as error:
            raise await self.explain_taken(rows.ids, error) from error

    async def _write_at_once(self) -> None:
        """An append that finds nobody at work does the work itself: a task would cost more than a
        third of it. What came meanwhile gets a writer."""
        self._active += 1
        try:
            await self._commit_group(self._take_group())
        finally:
            self._active -= 1
            if self._queue and not self._active:
                self._start_writer()

    def _statements(
        self, state: SessionState, after: SessionState, rows: EncodedEntries
    ) -> list[Statement]:
        used = rows.times[-1]
        move = (
            *(after.n, after.head, after.hash, after.depth, used, used, used, after.title),
            *(after.seal, state.tree, state.id, state.segment, state.head, state.seal),
        )
        places = (rows.ids, rows.numbers)
        entries = (rows.numbers, rows.ids, rows.times, rows.hashes, rows.bodies)
        moved = (state.tree, state.id, after.head)
        statements: list[Statement] = [(_APPEND, move + places + entries)]
        if len(rows.ids) == 1:
            one = tuple(column[0] for column in (*places, *entries))
            statements = [(_APPEND_ONE, move + one)]
        if self._spread:
            statements = [(_APPEND_ENTRIES, move + entries), (_APPEND_PLACES, places + moved)]
        if rows.blobs:
            statements.append((_APPEND_BLOBS, blob_columns(rows.blobs) + moved))
        if finished := [raw for raw in rows.ids if raw in self.drafts]:
            statements.append((_DELETE_DRAFTS, (state.tree, finished, *moved)))
        return statements

    def _start_writer(self) -> None:
        self._active += 1
        task = asyncio.get_running_loop().create_task(self._write_queue())
        self._writers.add(task)
        task.add_done_callback(self._writers.discard)

    async def _write_queue(self) -> None:
        try:
            while self._queue:
                await self._commit_group(self._take_group())
        finally:
            self._active -= 1

    async def _commit_group(self, group: list[_Append]) -> None:
        try:
            await self._commit(group)
        except BaseException as error:
            _fail(group, error)
            if not isinstance(error, psycopg.Error | RecollectError):
                raise

    def _take_group(self) -> list[_Append]:
        """What waits, of each session one append; cancelled ones are left out."""
        group: dict[bytes, _Append] = {}
        left: list[_Append] = []
        for pending in self._queue:
            if pending.done.cancelled():
                continue
            if pending.session in group or len(group) >= MAX_GROUP:
                left.append(pending)
            else:
                group[pending.session] = pending
        self._queue = left
        return [group[session] for session in sorted(group)]  # in one order: fewer deadlocks

    async def _commit(self, group: list[_Append]) -> None:
        try:
            moved = await self._database.run_again(
                lambda db, in_doubt: _run_group(db, group, in_doubt=in_doubt),
                since=min((pending.queued for pending in group), default=None),
            )
        except psycopg.errors.UniqueViolation:
            if len(group) == 1:
                raise
            for pending in group:  # one of them fails the others: each on its own
                try:
                    await self._commit([pending])
                except psycopg.errors.UniqueViolation as error:
                    _fail([pending], error)
            return
        for pending, one in zip(group, moved, strict=True):
            if not pending.done.done():
                pending.done.set_result(one)

    async def explain_taken(
        self, ids: Sequence[bytes], error: psycopg.errors.UniqueViolation
    ) -> RecollectError:
        async def find(db: Connection) -> list[bytes]:
            return [i for i in ids if ids.count(i) > 1 or await find_place(db, i) is not None][:3]

        if taken := await self._database.run(find):
            return AlreadyExists("an entry", ", ".join(raw.hex() for raw in taken))
        return Damaged(f"a row of {self._database.address} is where none should be ({error})")

    async def close(self) -> None:
        """Wait for what is being written."""
        await asyncio.gather(*self._writers, return_exceptions=True)


async def _run_group(db: Connection, group: list[_Append], *, in_doubt: bool) -> list[bool]:
    """Whether each of them took place; if an earlier attempt may have been committed, its entries
    tell."""
    stored = [in_doubt and await _is_stored(db, pending) for pending in group]
    left = [pending for pending, one in zip(group, stored, strict=True) if not one]
    if len(left) == 1 and len(left[0].statements) == 1:
        sql, values = left[0].statements[0]
        counts = [(await db.execute(sql, values, prepare=True)).rowcount]
    else:
        counts = await _run_transaction(db, left)
    moved = iter(counts)
    found = [one or next(moved) > 0 for one in stored]
    if in_doubt and not all(found):  # the attempt before may have been committed only now
        found = [one or await _is_stored(db, p) for p, one in zip(group, found, strict=True)]
    return found


async def _run_transaction(db: Connection, group: list[_Append]) -> list[int]:
    """In one round trip; the row count of each append's first statement."""
    if not group:
        return []
    firsts: list[psycopg.AsyncCursor[Any]] = []
    async with db.pipeline(), db.transaction():
        for pending in group:
            cursors = [
                await db.execute(sql, values, prepare=True) for sql, values in pending.statements
            ]
            firsts.append(cursors[0])
    return [cursor.rowcount for cursor in firsts]


async def _is_stored(db: Connection, pending: _Append) -> bool:
    """Whether the entry that is to be the head is there, with the hash that it is to have."""
    n, head, digest, *_, tree, _, segment, _, _ = pending.statements[0][1][:14]
    if await find_place(db, head) != EntryPlace(tree, segment, n):
        return False
    query = "SELECT hash FROM entries WHERE tree = %s AND segment = %s AND n = %s"
    row = await (await db.execute(query, (tree, segment, n), binary=True)).fetchone()
    return row is not None and row[0] == digest


def _fail(group: Sequence[_Append], error: BaseException) -> None:
    for pending in group:
        if isinstance(error, asyncio.CancelledError):
            pending.done.cancel()
        elif not pending.done.done():
            pending.done.set_exception(error)


def _moved_state(
    state: SessionState, new: Sequence[PreparedEntry], rows: EncodedEntries
) -> SessionState:
    title = title_from((item.body for item in new), state.title) or state.title
    seal = state.seal
    if title != state.title:
        seal = seal_of(state.id, title, state.owner, state.project, state.created)
    return msgspec.structs.replace(
        state,
        n=rows.numbers[-1],
        head=rows.ids[-1],
        hash=rows.hashes[-1],
        depth=state.depth + len(new),
        version=state.version + 1,
        used=max(state.used, rows.times[-1]),
        title=title,
        seal=seal,
    )


def entries_after(new: Sequence[PreparedEntry], parent: str | None) -> tuple[Entry, ...]:
    entries = []
    for item in new:
        entries.append(Entry(item.id, parent, item.time, item.body))
        parent = item.id
    return tuple(entries)
