"""Wakes those who wait for a session's head to move.

Moves made through this store wake them at once. Those of other processes are found by polling: one
task for all who wait asks SQLite whether another connection has committed, and reads their heads
only then. While nobody waits, nothing runs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias

import apsw

from recollect.errors import RecollectError, UnknownSession
from recollect.store import session_rows
from recollect.store.log_reader import LogReader

POLL_INTERVAL = 0.4  # seconds
Heads: TypeAlias = Mapping[str, str | None]
ReadHeads: TypeAlias = Callable[[Iterable[str], int | None], Awaitable[tuple[int, Heads]]]


class AppendWatch:
    """`read` returns the file's version and, unless it is the given one, the heads of these
    sessions."""

    def __init__(self, read: ReadHeads) -> None:
        self._read = read
        self._waiting: dict[str, dict[asyncio.Event, str | None]] = {}  # by session: known heads
        self._poller: asyncio.Task[None] | None = None

    async def wait(self, session: str, head: str | None, timeout: float) -> bool:
        moved = asyncio.Event()
        self._waiting.setdefault(session, {})[moved] = head  # before reading: no move is missed
        try:
            if await self._has_moved(session, head):
                return True
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    return await self._wait_for_move(moved, session, head)
            return False
        finally:
            self._remove(session, moved)

    async def _wait_for_move(self, moved: asyncio.Event, session: str, head: str | None) -> bool:
        if self._poller is None:
            self._poller = asyncio.get_running_loop().create_task(self._poll())
        while True:
            await moved.wait()
            moved.clear()
            if await self._has_moved(session, head):
                return True

    async def _has_moved(self, session: str, head: str | None) -> bool:
        _, heads = await self._read((session,), None)
        if session not in heads:
            raise UnknownSession(session)
        return heads[session] != head

    def _remove(self, session: str, moved: asyncio.Event) -> None:
        del self._waiting[session][moved]
        if not self._waiting[session]:
            del self._waiting[session]
        if not self._waiting and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    def notify(self, session: str) -> None:
        """The session's head has moved."""
        for moved in self._waiting.get(session, ()):
            moved.set()

    def notify_all(self) -> None:
        for session in self._waiting:
            self.notify(session)

    async def _poll(self) -> None:
        version = None  # so that the first round reads the heads: one may have moved before it
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            try:
                version, heads = await self._read(tuple(self._waiting), version)
            except RecollectError:
                self.notify_all()  # each reads for itself, and raises what is wrong
                continue
            for session, head in heads.items():
                for moved, known in self._waiting.get(session, {}).items():
                    if known != head:
                        moved.set()


def read_heads(
    reader: LogReader, sessions: Iterable[str], version: int | None
) -> tuple[int, dict[str, str | None]]:
    """The file's version and, if it is another one than `version`, the heads of the sessions that
    exist."""
    found = int(reader.db.pragma("data_version"))
    if found == version:
        return found, {}
    return found, {session: head for session in sessions for head in _head(reader.db, session)}


def _head(db: apsw.Connection, session: str) -> list[str | None]:
    try:
        number = session_rows.session_number(db, session)
    except UnknownSession:
        return []
    return [session_rows.read_head(db, number).id]
