"""Keeps a file in good order in the background: the search index, the dictionary, the journal."""

from __future__ import annotations

import asyncio
import contextlib

import apsw

from recollect.errors import RecollectError
from recollect.store import search_index, wal_journal
from recollect.store.group_commit import GroupCommitter
from recollect.store.log_writer import LogWriter

INDEX_DELAY = 5.0  # seconds until new entries are indexed; a search indexes them at once
CHECKPOINT_PAGES = 500


class IndexMaintenance:
    def __init__(self, commit: GroupCommitter, warnings: list[str]) -> None:
        self._commit, self._warnings = commit, warnings
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Entries were appended: index them soon, unless that is under way."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._maintain_in_rounds())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _maintain_in_rounds(self) -> None:
        """In rounds until one finds nothing to do; a busy session is indexed in large slices."""
        try:
            indexed = 1
            while indexed:
                await asyncio.sleep(0 if indexed == search_index.SLICE else INDEX_DELAY)
                indexed = await self._commit.run_exclusively(_maintain)
        except RecollectError as error:
            # the log is not affected: pending segments stay marked and are tried again
            self._warnings.append(f"the search index is behind: {error}")


def _maintain(writer: LogWriter) -> int:
    """Index a slice, train the dictionary when it is due, checkpoint when it pays."""
    indexed = search_index.index_slice(writer)
    search_index.train_dictionary_once(writer)
    if wal_journal.frames_in_use(writer.db) > CHECKPOINT_PAGES:
        with contextlib.suppress(apsw.BusyError):  # another process is doing it
            writer.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    return indexed
