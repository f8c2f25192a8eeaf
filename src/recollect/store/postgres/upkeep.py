"""What an open store does beside its calls: it says that it lives, saves the replies of servers
that are gone, and keeps the search index near the log.

A store indexes the sessions that it appended to; what a server that is gone left behind is indexed
once in a while, and by every search.
"""

from __future__ import annotations

import asyncio
import contextlib
from itertools import count

from recollect.errors import RecollectError
from recollect.store.postgres.append_writer import AppendWriter
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.word_index import index_all, index_session
from recollect.store.postgres.writer_lease import HEARTBEAT, WriterLease

_INDEX_ALL = 60  # rounds


class Upkeep:
    def __init__(self, database: Database, lease: WriterLease, writer: AppendWriter) -> None:
        self._database, self._lease, self._writer = database, lease, writer
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep_lease()), loop.create_task(self._index())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            with contextlib.suppress(RecollectError):  # the next round tries again
                await self._database.run(self._lease.renew)
                await self._lease.recover()

    async def _index(self) -> None:
        for number in count(1):
            await asyncio.sleep(HEARTBEAT)
            with contextlib.suppress(RecollectError):
                for tree, session in self._writer.take_unindexed():
                    await self._index_one(tree, session)
                if number % _INDEX_ALL == 0:
                    await index_all(self._database)

    async def _index_one(self, tree: bytes, session: bytes) -> None:
        async def work(db: Connection) -> None:
            await index_session(db, tree, session)

        await self._database.run(work)
