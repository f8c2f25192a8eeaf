"""Connections to the database: a pool that reconnects, retries, and errors in our own words.

A transaction that the database gave up for another one (SQLSTATE 40001, 40P01) is run again. One
whose connection was lost is run again, too, for a while; it is told so, because
the lost one may have been committed. No message names a password.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from itertools import zip_longest
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, conninfo
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from recollect.errors import CannotOpen, CannotReach, CannotWrite, StoreClosed, StoreError

T = TypeVar("T")
Connection: TypeAlias = AsyncConnection[TupleRow]
PATIENCE = 30.0  # seconds that a lost database may take to come back
MAX_CONFLICTS = 50  # times that a transaction is run again for another one's sake
MAX_CONNECTIONS = 8
_CONNECT_TIMEOUT = 10
_LEAST_WAIT = 0.1  # seconds for a connection of the pool
_RECONNECT_SECONDS = 2.0  # of attempts in growing intervals, then they begin anew
# a peer that vanished without a word is noticed within half a minute
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": _CONNECT_TIMEOUT,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "application_name": "recollect",
}
_CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
_READ_ONLY = psycopg.errors.ReadOnlySqlTransaction  # the primary became a replica
_LOST = (psycopg.OperationalError, psycopg.InterfaceError, _READ_ONLY)
_REFUSED = {
    psycopg.errors.DiskFull: "the database's disk is full",
    psycopg.errors.InsufficientPrivilege: "the database role may not write to the store's tables",
    psycopg.errors.OutOfMemory: "the database is out of memory",
}


def address_of(url: str) -> str:
    """The URL for people, without its password."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise CannotOpen(
            "the PostgreSQL store",
            "its URL cannot be read; write postgresql://USER@HOST:PORT/DATABASE",
        ) from None
    user = f"{parts['user']}@" if parts.get("user") else ""
    name = parts.get("dbname") or parts.get("user") or ""
    return f"postgresql://{user}{_hosts(str(parts.get('host') or ''), parts.get('port'))}/{name}"


def _hosts(host: str, port: object) -> str:
    """As in a URL; a database with replicas has several, each with its port or all with one."""
    hosts, ports = host.split(","), str(port or "").split(",")
    ports = ports * len(hosts) if len(ports) == 1 else ports
    shown = (f"[{one}]" if ":" in one else one for one in hosts)
    pairs = zip_longest(shown, ports[: len(hosts)], fillvalue="")
    return ",".join(f"{one}:{number}" if number else one for one, number in pairs)


class Database:
    def __init__(self, url: str, patience: float = PATIENCE) -> None:
        self.address, self._patience = address_of(url), patience
        given = conninfo.conninfo_to_dict(url)
        self._options = {key: value for key, value in _DEFAULTS.items() if key not in given}
        self._url = url
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            url,
            kwargs={**self._options, "autocommit": True},
            min_size=1,
            max_size=MAX_CONNECTIONS,
            configure=_make_durable,
            open=False,
            timeout=patience,
            reconnect_timeout=_RECONNECT_SECONDS,
            reconnect_failed=self._connect_again,
        )
        self._attempts: set[asyncio.Task[None]] = set()

    async def connect(self) -> Connection:
        """A connection of its own, outside the pool."""
        try:
            db = await AsyncConnection.connect(self._url, autocommit=True, **self._options)
            await _make_durable(db)
        except psycopg.Error as error:
            raise CannotOpen(
                self.address, f"{_reason(error)}; start it, or correct the URL"
            ) from error
        return db

    async def open(self) -> None:
        await self._pool.open()

    async def close(self) -> None:
        await self._pool.close()
        await asyncio.gather(*self._attempts, return_exceptions=True)

    async def _connect_again(self, pool: AsyncConnectionPool[Connection]) -> None:
        """The pool doubles the time between its attempts, so that after a long outage it would not
        notice for as long again that the database is back. While somebody waits, begin anew."""
        if pool.get_stats().get("requests_waiting"):
            task = asyncio.create_task(self._attempt())
            self._attempts.add(task)
            task.add_done_callback(self._attempts.discard)

    async def _attempt(self) -> None:
        with contextlib.suppress(PoolTimeout, PoolClosed, psycopg.Error):
            async with self._pool.connection(timeout=_RECONNECT_SECONDS):
                pass  # asking for a connection makes the pool try to get one at once

    async def run(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Run work that may be repeated as it is."""
        return await self.run_again(lambda db, _: work(db))

    async def run_again(
        self, work: Callable[[Connection, bool], Awaitable[T]], since: float | None = None
    ) -> T:
        """Run work; its second argument says whether an attempt before may have been committed.
        `since`: when somebody began to wait for it, if not now."""
        began = time.monotonic() if since is None else since
        deadline, conflicts, in_doubt = began + self._patience, 0, False
        while True:
            try:
                left = max(_LEAST_WAIT, deadline - time.monotonic())
                async with self._pool.connection(timeout=left) as db:
                    return await work(db, in_doubt)
            except psycopg.errors.UniqueViolation:
                raise  # who inserted knows what it means
            except _CONFLICTS as error:
                conflicts += 1
                if conflicts > MAX_CONFLICTS:
                    why = f"other transactions were in the way {conflicts} times"
                    raise CannotWrite(self.address, why) from error
                await asyncio.sleep(random.uniform(0, 0.002 * min(conflicts, 20)))
            except psycopg.Error as error:
                if not _is_lost(error) or time.monotonic() > deadline:
                    raise self._explain(error, in_doubt=in_doubt) from error
                in_doubt = True
                await asyncio.sleep(random.uniform(0.01, 0.1))

    def _explain(self, error: psycopg.Error, *, in_doubt: bool) -> StoreError:
        if isinstance(error, PoolClosed):
            return StoreClosed(self.address)
        if isinstance(error, PoolTimeout):
            return CannotReach(self.address, "no connection in time", in_doubt=in_doubt)
        if _is_lost(error):
            return CannotReach(self.address, _reason(error), in_doubt=True)
        return CannotWrite(self.address, _refusal(error) or _reason(error))


def _is_lost(error: psycopg.Error) -> bool:
    """Whether another connection may do what this one could not."""
    if isinstance(error, PoolClosed | PoolTimeout):
        return False  # the pool has waited long enough
    return isinstance(error, _LOST) and _refusal(error) is None


async def _make_durable(db: Connection) -> None:
    """What is acknowledged is on disk, whatever the database's own default is."""
    ((found,),) = await (await db.execute("SHOW synchronous_commit")).fetchall()
    if found in ("off", "local"):
        await db.execute("SET synchronous_commit = on")


def _refusal(error: psycopg.Error) -> str | None:
    return next((why for kind, why in _REFUSED.items() if isinstance(error, kind)), None)


def _reason(error: psycopg.Error) -> str:
    """The first line of what the database or the client library says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
