"""What an open store does beside its calls: it says that it lives, saves the replies of servers
that are gone, and keeps the search index near the log."""

from __future__ import annotations

import asyncio
import contextlib

from recollect.errors import RecollectError
from recollect.store.postgres.connections import Connection, Database
from recollect.store.postgres.word_index import index_pending
from recollect.store.postgres.writer_lease import HEARTBEAT, WriterLease


class Upkeep:
    def __init__(self, database: Database, lease: WriterLease) -> None:
        self._database, self._lease = database, lease
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            with contextlib.suppress(RecollectError):  # the next round tries again
                await self._database.run(self._lease.renew)
                await self._lease.recover()
                await self._index()

    async def _index(self) -> None:
        async def once(db: Connection) -> bool:
            await self._lease.renew(db)  # indexing may take longer than a lease
            return await index_pending(db)

        while await self._database.run(once):
            pass
