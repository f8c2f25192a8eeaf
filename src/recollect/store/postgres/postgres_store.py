"""The store on PostgreSQL, for any number of servers. `open_postgres` is the way in.

Servers keep nothing of their own: what they cache is checked by the statement that uses it. The
log decides between two that append to one session; the rules of the tables are in `tables.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from itertools import chain
from types import EllipsisType
from typing import TypeVar

import psycopg

from recollect.entries import Body, Entry, Message, check
from recollect.errors import (
    BadInput,
    HeadMoved,
    UnknownEntry,
)
from recollect.store.contract import (
    OnDamage,
    Project,
    SessionInfo,
)
from recollect.store.ids import is_id, new_id, now
from recollect.store.log_writer import PreparedEntry, prepare_entries
from recollect.store.postgres import contents, id_lookup, session_changes
from recollect.store.postgres.append_notices import AppendNotices
from recollect.store.postgres.append_writer import AppendWriter
from recollect.store.postgres.branches import add_branch
from recollect.store.postgres.connections import PATIENCE, Connection, Database
from recollect.store.postgres.path_reader import (
    SegmentRun,
    path_length,
    read_chain,
    read_positions,
    read_segment,
)
from recollect.store.postgres.project_rows import read_project
from recollect.store.postgres.session_states import (
    EntryPlace,
    find_place,
    place_in_session,
    raw_id,
)
from recollect.store.postgres.stored_contents import StoredContents
from recollect.store.postgres.tables import migrate
from recollect.store.postgres.upkeep import Upkeep
from recollect.store.postgres.writer_lease import WriterLease
from recollect.store.rename_session import rename_session

T = TypeVar("T")
LONG_BATCH = 200  # items; larger appends are encoded in a thread


class PostgresStore(StoredContents):
    """Implements `recollect.store.contract.Store`. Made by `open_postgres`."""

    def __init__(self, database: Database, *, spread: bool) -> None:
        super().__init__(database)
        self.warnings: list[str] = []  # for the user: what opening found and repaired
        self._writer = AppendWriter(database, spread=spread)
        self._notices = AppendNotices(database)
        self._lease = WriterLease(database)
        self._upkeep = Upkeep(database, self._lease, self._writer)

    async def recover(self) -> None:
        """Save the replies of servers that are gone, and go on doing so."""
        for session, entry in await self._lease.recover():
            self.warnings.append(
                f"an unfinished reply was saved as interrupted entry {entry} of session {session}"
            )
        self._upkeep.start()

    async def create(
        self,
        *,
        project: Project | None = None,
        title: str = "",
        id: str | None = None,  # noqa: A002 - the name callers expect
        created: int | None = None,
        owner: str = "",
    ) -> SessionInfo:
        new = session_changes.SessionFields(
            id=id or new_id(),
            title=title,
            owner=owner,
            created=now() if created is None else created,
        )
        await self._change(lambda db, again: session_changes.create(db, new, project, again=again))
        return await self.session(new.id)

    async def check_usable(self) -> None:
        await self.sessions(limit=1)

    async def sessions(
        self,
        *,
        project: Project | None = None,
        trashed: bool = False,
        owner: str | None = None,
        limit: int | None = None,
        before: tuple[int, str] | None = None,
    ) -> tuple[SessionInfo, ...]:
        wanted = id_lookup.SessionFilter(
            project=project, trashed=trashed, owner=owner, limit=limit, before=before
        )
        return await self._read(lambda db: id_lookup.list_sessions(db, wanted))

    async def session(self, given: str) -> SessionInfo:
        return await self._read(lambda db: id_lookup.session_by_id(db, given))

    async def entry(self, given: str, *, session: str | None = None) -> tuple[SessionInfo, Entry]:
        async def read(db: Connection) -> tuple[SessionInfo, Entry]:
            writer, place = await id_lookup.entry_by_id(db, given, session)
            info = await id_lookup.read_session(db, place.tree, writer)
            return info, await contents.read_entry(db, place)

        return await self._read(read)

    async def project_of(self, session: str) -> Project | None:
        async def read(db: Connection) -> Project | None:
            return await read_project(db, (await self._writer.state(db, session)).project)

        return await self._read(read)

    async def fork(
        self, session: str, *, at: str | None = None, title: str = "", owner: str | None = None
    ) -> SessionInfo:
        new = session_changes.SessionFields(id=new_id(), title=title, owner=owner, created=now())

        async def write(db: Connection, again: bool) -> None:  # noqa: FBT001 - see `run_again`
            state = await self._writer.state(db, session)
            await session_changes.fork(db, state, at, new, again=again)

        await self._change(write)
        return await self.session(new.id)

    async def adopt(self, info: SessionInfo, project: Project | None) -> SessionInfo:
        await self._change(lambda db, _: session_changes.adopt(db, info, project))
        return await self.session(info.id)

    async def rewind(
        self, session: str, to: str | None, *, head: str | EllipsisType | None = ...
    ) -> SessionInfo:
        async def write(db: Connection, again: bool) -> None:  # noqa: FBT001 - see `run_again`
            state = await self._writer.state(db, session)
            actual = state.head.hex() or None
            if again and actual == to:
                return  # the attempt before was committed
            if not isinstance(head, EllipsisType) and actual != head:
                raise HeadMoved(session, head, actual)
            await session_changes.rewind(db, state, to)

        await self._change(write)
        self._notices.moved(session)
        return await self.session(session)

    async def rename(self, session: str, title: str) -> SessionInfo:
        return await rename_session(self, session, title)

    async def trash(self, session: str) -> SessionInfo:
        return await self._set_trashed(session, now())

    async def restore(self, session: str) -> SessionInfo:
        return await self._set_trashed(session, None)

    async def _set_trashed(self, session: str, when: int | None) -> SessionInfo:
        async def write(db: Connection) -> None:
            state = await self._writer.state(db, session)
            await db.execute(
                "UPDATE sessions SET trashed = %s, version = version + 1"
                " WHERE tree = %s AND session = %s",
                (when, state.tree, state.id),
            )

        await self._read(write)
        return await self.session(session)

    async def append(
        self, session: str, items: Sequence[Body | Entry], *, parent: str | None
    ) -> tuple[Entry, ...]:
        self._check_open()
        if not items:
            return ()
        entries = await self._writer.append(session, await _prepare(items), parent)
        self._notices.moved(session)
        return entries

    async def branch(
        self, session: str, items: Sequence[Body | Entry], *, at: str | None
    ) -> tuple[Entry, ...]:
        if not items:
            return ()
        new = await _prepare(items)

        async def write(db: Connection, again: bool) -> tuple[Entry, ...]:  # noqa: FBT001
            state = await self._writer.state(db, session)
            return await add_branch(db, state, at, new, again=again)

        try:
            return await self._change(write)
        except psycopg.errors.UniqueViolation as error:
            ids = [bytes.fromhex(item.id) for item in new]
            raise await self._writer.explain_taken(ids, error) from error

    async def path(
        self,
        session: str,
        *,
        at: str | None = None,
        last: int | None = None,
        since: str | None = None,
        damaged: OnDamage = "refuse",
    ) -> tuple[Entry, ...]:
        async def read(db: Connection) -> tuple[Entry, ...]:
            runs, tree = await self._chain(db, session, at)
            stop = path_length(runs)
            start = 0 if last is None else max(0, stop - last)
            if since is not None:
                place = await find_place(db, raw_id(since))
                found = [
                    r for r in runs if place and r.segment == place.segment and place.n <= r.top
                ]
                if place is None or place.tree != tree or not found:
                    raise UnknownEntry(since, session)
                start = max(start, found[0].depth + place.n)
            return await read_positions(db, tree, runs, start, stop, mark=damaged == "mark")

        return await self._read(read)

    async def page(
        self, session: str, *, start: int, limit: int, at: str | None = None
    ) -> tuple[Entry, ...]:
        if start < 0 or limit < 0:
            raise BadInput(f"a page of {limit} entries from {start} on: both count from 0 up")

        async def read(db: Connection) -> tuple[Entry, ...]:
            runs, tree = await self._chain(db, session, at)
            return await read_positions(db, tree, runs, start, start + limit, mark=False)

        return await self._read(read)

    async def _chain(
        self, db: Connection, session: str, at: str | None
    ) -> tuple[tuple[SegmentRun, ...], bytes]:
        state = await self._writer.state(db, session)
        end = EntryPlace(state.tree, state.segment, state.n)
        if at is not None:
            end = await place_in_session(db, state.tree, state.id, at)
        return await read_chain(db, end), state.tree

    async def wait_for_append(self, session: str, head: str | None, timeout: float) -> bool:
        self._check_open()
        return await self._notices.wait(session, head, timeout)

    async def tree(self, session: str, *, damaged: OnDamage = "refuse") -> tuple[Entry, ...]:
        async def read(db: Connection) -> tuple[Entry, ...]:
            state = await self._writer.state(db, session)
            query = "SELECT segment FROM segments WHERE tree = %s AND session = %s ORDER BY segment"
            segments = await (await db.execute(query, (state.tree, state.id))).fetchall()
            mark = damaged == "mark"
            parts = [await read_segment(db, state.tree, s, mark=mark) for (s,) in segments]
            return tuple(chain.from_iterable(parts))

        return await self._read(read)

    async def tree_page(
        self, session: str, *, limit: int, after: str | None = None
    ) -> tuple[Entry, ...]:
        async def read(db: Connection) -> tuple[Entry, ...]:
            state = await self._writer.state(db, session)
            at = await place_in_session(db, state.tree, state.id, after) if after else None
            first = at.segment if at else 0
            entries: tuple[Entry, ...] = ()
            query = (
                "SELECT segment FROM segments WHERE tree = %s AND session = %s AND segment >= %s"
                " ORDER BY segment"
            )
            found = await (await db.execute(query, (state.tree, state.id, first))).fetchall()
            for (segment,) in found:
                number, room = at.n if at and segment == first else 0, limit - len(entries)
                entries += await read_segment(
                    db, state.tree, segment, mark=False, after=number, limit=room
                )
                if len(entries) == limit:
                    break
            return entries

        return await self._read(read)

    async def draft(
        self,
        session: str,
        message: Message,
        *,
        parent: str | None,
        id: str | None = None,  # noqa: A002 - the name callers expect
    ) -> str:
        draft, json = id or new_id(), check(message)
        if not is_id(draft):
            raise BadInput(f"draft id {draft!r} is not 32 hexadecimal digits")
        raw = bytes.fromhex(draft)

        async def write(db: Connection) -> None:
            state = await self._writer.state(db, session)
            await self._lease.save_draft(db, state, raw, json, parent)

        await self._read(write)
        self._writer.drafts.add(raw)
        return draft

    async def close(self) -> None:
        self.closed = True
        await self._upkeep.stop()
        await self._writer.close()
        await self._notices.close()
        with contextlib.suppress(Exception):  # the lease runs out by itself
            await asyncio.wait_for(self._lease.release(), 1.0)
        await self._database.close()


async def _prepare(items: Sequence[Body | Entry]) -> list[PreparedEntry]:
    return (
        prepare_entries(items)
        if len(items) <= LONG_BATCH
        else await asyncio.to_thread(prepare_entries, items)
    )


@contextlib.asynccontextmanager
async def open_postgres(url: str, *, patience: float = PATIENCE) -> AsyncIterator[PostgresStore]:
    """Open the store in a database, which gets its tables if it has none; close it at the end. A
    database that is lost may take `patience` seconds to come back."""
    database = Database(url, patience)
    async with await database.connect() as db:
        spread = await migrate(db, database.address)
    await database.open()
    store = PostgresStore(database, spread=spread)
    try:
        await store.recover()
        yield store
    finally:
        await store.close()
