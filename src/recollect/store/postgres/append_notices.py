"""Wakes those who wait for a session's head to move.

Moves made through this store wake them at once. For those of other servers one task reads the heads
of all waited-for sessions every `POLL` seconds; a notice of the other server wakes it earlier. A
notice is sent after the commit, over another connection, because `NOTIFY` in the append's own
transaction would take a lock on the whole database; many appends share one.
"""

from __future__ import annotations

import asyncio
import contextlib

import psycopg

from recollect.errors import RecollectError, StoreClosed, UnknownSession
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.session_states import find_tree, raw_id

CHANNEL = "recollect"
POLL = 0.8  # seconds
_SEND_EVERY = 0.05  # seconds
_MOST_IDS = 200  # in one notice, which holds 8,000 bytes
_RECONNECT = 1.0  # seconds


class AppendNotices:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[bytes, set[asyncio.Event]] = {}
        self._trees: dict[bytes, bytes] = {}  # of the waited-for sessions
        self._heads: dict[bytes, bytes] = {}  # as last read
        self._outbox: set[bytes] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._somebody = asyncio.Event()  # waits
        self._closed = False

    def moved(self, session: str) -> None:
        """This store moved the session's head: wake ours, and tell the others."""
        raw = raw_id(session)
        self._wake(raw)
        self._outbox.add(raw)
        if self._is_idle("send"):
            self._start("send")

    async def wait(self, session: str, head: str | None, timeout: float) -> bool:
        raw, known = raw_id(session), raw_id(head) if head else b""
        event = asyncio.Event()
        self._waiting.setdefault(raw, set()).add(event)  # before reading: no move is missed
        try:
            self._trees[raw] = await self._database.run(lambda db: _tree(db, session))
            if await self._read_head(raw) != known:
                return True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    return await self._wait_for_move(event, raw, known)
            return False
        finally:
            self._waiting[raw].discard(event)
            if not self._waiting[raw]:
                del self._waiting[raw]
                self._trees.pop(raw, None)
                self._heads.pop(raw, None)

    async def _wait_for_move(self, event: asyncio.Event, session: bytes, known: bytes) -> bool:
        for name in ("poll", "listen"):
            if self._is_idle(name):
                self._start(name)
        self._somebody.set()
        while True:
            await event.wait()
            event.clear()
            if self._closed:
                raise StoreClosed(self._database.address)
            if await self._read_head(session) != known:
                return True

    async def close(self) -> None:
        self._closed = True
        for session in self._waiting:
            self._wake(session)
        if "send" in self._tasks:  # what was appended last is still told
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._tasks["send"], 1.0)
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _is_idle(self, name: str) -> bool:
        return name not in self._tasks or self._tasks[name].done()

    def _start(self, name: str) -> None:
        work = {"send": self._send, "poll": self._poll, "listen": self._listen}[name]
        self._tasks[name] = asyncio.get_running_loop().create_task(work())

    def _wake(self, session: bytes) -> None:
        for event in self._waiting.get(session, ()):
            event.set()

    async def _read_head(self, session: bytes) -> bytes:
        query = "SELECT head FROM sessions WHERE tree = %s AND session = %s"

        async def read(db: Connection) -> bytes:
            cursor = await db.execute(query, (self._trees[session], session), binary=True)
            ((head,),) = await cursor.fetchall()
            return bytes(head)

        return await self._database.run(read)

    async def _send(self) -> None:
        while self._outbox:
            some = [self._outbox.pop() for _ in range(min(len(self._outbox), _MOST_IDS))]
            names = ",".join(raw.hex() for raw in some)
            with contextlib.suppress(RecollectError):  # the others poll
                await self._database.run(
                    lambda db, names=names: db.execute(  # type: ignore[misc]
                        "SELECT pg_notify(%s, %s)", (CHANNEL, names)
                    )
                )
            await asyncio.sleep(_SEND_EVERY)

    async def _poll(self) -> None:
        while True:
            if not self._trees:
                self._somebody.clear()
                await self._somebody.wait()
            await asyncio.sleep(POLL)
            try:
                heads = await self._database.run(self._read_heads)
            except RecollectError:
                heads = {}
                for session in self._waiting:
                    self._wake(session)  # each reads for itself, and raises what is wrong
            for session, head in heads.items():
                if self._heads.get(session) != head:
                    self._heads[session] = head
                    self._wake(session)

    async def _read_heads(self, db: Connection) -> dict[bytes, bytes]:
        query = "SELECT session, head FROM sessions WHERE tree = ANY (%s) AND session = ANY (%s)"
        trees, sessions = list(set(self._trees.values())), list(self._trees)
        return dict(await (await db.execute(query, (trees, sessions), binary=True)).fetchall())

    async def _listen(self) -> None:
        """On a connection of its own, for as long as the store is open."""
        while True:
            with contextlib.suppress(psycopg.Error, RecollectError):
                async with await self._database.connect() as db:
                    await db.execute(f"LISTEN {CHANNEL}")
                    async for notice in db.notifies():
                        for name in notice.payload.split(","):
                            self._wake(raw_id(name))
            await asyncio.sleep(_RECONNECT)


async def _tree(db: Connection, session: str) -> bytes:
    tree = await find_tree(db, raw_id(session))
    if tree is None:
        raise UnknownSession(session)
    return tree
