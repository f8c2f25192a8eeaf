"""One writer per store and process: writes that wait together share one transaction and one sync.

A write is a function of the connection. It runs on the event loop's own thread while commits are
quick, because handing over to a thread costs more than a commit does (0.12 ms against 0.07 ms of
work, measured); it moves to a thread when the disk is slow or another process holds the file, so
that nothing else waits. A write either happened wholly, and then it is on disk when its caller
hears of it, or it raised and left nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar, cast

import apsw

from recollect.errors import CannotWrite, Damaged, RecollectError

T = TypeVar("T")
WriteFunction = Callable[[apsw.Connection], T]

BUSY_TIMEOUT = 60.0  # seconds another process may hold the file before a write gives up
CLOSE_TIMEOUT = 1.0  # seconds, when the store is being closed
LOOP_BUSY_TIMEOUT = 0.003  # seconds the event loop itself is willing to wait for another process
MAX_UNSHARED_TIME = 0.005  # seconds one task may write without asking whether others want to
SLOW_COMMIT = 0.010  # seconds; slower disks are waited for in a thread


class _Waiting:
    __slots__ = ("done", "error", "long", "result", "write")

    def __init__(self, write: WriteFunction[Any], long: bool) -> None:  # noqa: FBT001
        self.write, self.long = write, long
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False


class WriteConnection(Protocol):
    """What a committer needs to know of the connection that writes."""

    db: apsw.Connection

    def begin(self) -> None: ...

    def commit(self) -> None: ...

    def undone(self) -> None:
        """A transaction was rolled back."""


class GroupCommitter:
    def __init__(self, transactions: WriteConnection, path: str) -> None:
        self._transactions, self._db, self._path = transactions, transactions.db, path
        self._queue: list[_Waiting] = []
        self._thread: ThreadPoolExecutor | None = None
        self._in_thread: asyncio.Future[None] | None = None
        self._pace = 0.0  # how long commits take, a running average
        self._deadline = 0.0
        self._tainted = False
        self._last_moment = float("inf")
        self._turn = (0, 0.0)  # whose it is, since when
        self._db.set_busy_handler(self._keep_waiting)

    async def __call__(self, write: WriteFunction[T], *, long: bool = False) -> T:
        """Run a write in a transaction; a `long` one in the thread whatever the disk's pace."""
        waiting = _Waiting(write, long)
        self._queue.append(waiting)
        try:
            await self._let_others_join()
            while not waiting.done:
                await self._round()
        except asyncio.CancelledError:
            if waiting in self._queue:
                self._queue.remove(waiting)
            raise
        if waiting.error is not None:
            raise waiting.error
        return cast(T, waiting.result)

    async def _let_others_join(self) -> None:
        """Whoever else wants to write now joins this commit. A task that alone writes one thing
        after the other need not ask each time, only often enough for the others to get on."""
        task, now = id(asyncio.current_task()), time.monotonic()
        if self._turn[0] != task or now - self._turn[1] > MAX_UNSHARED_TIME:
            self._turn = (task, now)
            await asyncio.sleep(0)

    async def run_exclusively(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run work that makes its own transactions, in the thread, when no write is under way."""
        while self._in_thread is not None:
            await asyncio.shield(self._in_thread)
        return await self._hand_over(lambda: self._patiently(work))

    def stop_waiting(self) -> None:
        """From now on, writes that wait for another process give up soon."""
        self._last_moment = time.monotonic() + CLOSE_TIMEOUT

    async def close(self) -> None:
        """Wait for a write that is under way."""
        while self._in_thread is not None:
            await asyncio.shield(self._in_thread)
        if self._thread is not None:
            self._thread.shutdown(wait=False)

    async def _round(self) -> None:
        if self._in_thread is not None:
            await asyncio.shield(self._in_thread)
            return
        batch, self._queue = self._queue, []
        if self._pace < SLOW_COMMIT and not any(waiting.long for waiting in batch):
            self._deadline = time.monotonic() + LOOP_BUSY_TIMEOUT
            try:
                self._commit(batch)
                return
            except apsw.BusyError:
                pass  # nothing has begun: wait for the other process in the thread
        await self._hand_over(lambda: self._commit_patiently(batch))

    async def _hand_over(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="recollect-writer")
        loop = asyncio.get_running_loop()
        self._in_thread = loop.create_future()
        running = loop.run_in_executor(self._thread, work)
        running.add_done_callback(self._thread_is_free)
        return await asyncio.shield(running)

    def _thread_is_free(self, _: asyncio.Future[Any]) -> None:
        free, self._in_thread = self._in_thread, None
        if free is not None and not free.done():
            free.set_result(None)

    def _patiently(self, work: Callable[[apsw.Connection], T]) -> T:
        self._deadline = time.monotonic() + BUSY_TIMEOUT
        try:
            return work(self._db)
        except Exception as error:
            self._undo()
            raise translate_error(error, self._path) from error

    def _commit_patiently(self, batch: list[_Waiting]) -> None:
        try:
            self._patiently(lambda _: self._commit(batch))
        except RecollectError as error:
            _finish(batch, error)

    def _keep_waiting(self, attempt: int) -> bool:
        if time.monotonic() > min(self._deadline, self._last_moment):
            return False
        # jitter, so that processes which wait for each other do not march in step
        time.sleep(random.uniform(0.0002, 0.002 if attempt < 20 else 0.02))
        return True

    def _commit(self, batch: list[_Waiting]) -> None:
        started = time.perf_counter()
        try:
            self._transaction(batch)
        except (apsw.BusyError, KeyboardInterrupt, SystemExit):
            self._undo()
            raise
        except Exception as error:  # noqa: BLE001 - handed to whoever asked for the write
            self._undo()
            self._tainted = isinstance(error, apsw.IOError | apsw.FullError)
            self._restart_journal()
            if len(batch) == 1:
                _finish(batch, translate_error(error, self._path))
            else:  # one of them spoils it for the others: each on its own
                for waiting in batch:
                    self._commit([waiting])
        self._pace = 0.8 * self._pace + 0.2 * (time.perf_counter() - started)

    def _transaction(self, batch: list[_Waiting]) -> None:
        db = self._db
        self._restart_journal()
        self._transactions.begin()
        for waiting in batch:
            before, waiting.error = db.total_changes(), None
            try:
                waiting.result = waiting.write(db)
            except RecollectError as error:
                if db.total_changes() != before:
                    raise
                waiting.error = error
        self._transactions.commit()
        _finish(batch, None)

    def _restart_journal(self) -> None:
        """A commit that the disk refused may lie in the journal, whole but unwanted: a crash would
        bring it back. Starting the journal anew makes sure that it is gone."""
        if self._tainted:
            with contextlib.suppress(apsw.Error):  # still no room: the next write tries again
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                self._tainted = False

    def _undo(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._transactions.undone()


def _finish(batch: list[_Waiting], error: BaseException | None) -> None:
    for waiting in batch:
        waiting.done = True
        waiting.error = error or waiting.error


# What reading a row may raise when the row is not what was written.
_NONSENSE = (StopIteration, TypeError, AttributeError, LookupError, ValueError, struct.error)


def translate_error(error: BaseException, path: str, *, reading: bool = False) -> BaseException:
    """SQLite's error in our words; when reading, also what nonsense in a row led to; anything
    else as it is."""
    if isinstance(error, RecollectError):
        return error
    if isinstance(error, apsw.FullError):
        return CannotWrite(path, "the disk is full")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError | apsw.CantOpenError):
        return CannotWrite(path, "the file or its directory is read-only")
    if isinstance(error, apsw.IOError):
        return CannotWrite(path, f"the disk reported an error ({error})")
    if isinstance(error, apsw.BusyError):
        return CannotWrite(path, "another process holds it and did not let go in time")
    if isinstance(error, apsw.Error) or (reading and isinstance(error, _NONSENSE)):
        return Damaged(f"{path} is damaged ({type(error).__name__}: {error})")
    return error
