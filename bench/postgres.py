"""Appends and pages on PostgreSQL, beside raw psycopg with the same durability.

Raw: one plain table, `json.dumps` of each message, an INSERT and its commit over a connection that
is kept open (one for each writer), `synchronous_commit=on` for both.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import Any

from bench import conversation
from bench.measure import Failed, Setting, progress, run
from bench.report import Row, Table, seconds

_TABLE = (
    "CREATE TABLE IF NOT EXISTS raw_messages (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " session text NOT NULL, body text NOT NULL)"
)
_PAGE = 20
_WRITERS = 50
_WARM = 2  # writers that write before the clock starts: both prepare their statements


async def append_raw(_: Path, url: str, n: int, writers: int) -> dict[str, Any]:
    import psycopg

    values = [json.loads(body) for body in conversation.payloads(n)]
    opened = [await psycopg.AsyncConnection.connect(url, autocommit=True) for _ in range(writers)]
    await opened[0].execute(_TABLE)

    async def write(db: psycopg.AsyncConnection, session: str) -> None:
        for value in values:
            insert = "INSERT INTO raw_messages (session, body) VALUES (%s, %s)"
            await db.execute(insert, (session, json.dumps(value)))

    await asyncio.gather(*(write(db, "warm-up") for db in opened[:_WARM]))
    began = time.perf_counter()
    await asyncio.gather(*(write(db, str(number)) for number, db in enumerate(opened)))
    took = time.perf_counter() - began
    for db in opened:
        await db.close()
    return {"rate": n * writers / took}


async def append_ours(_: Path, url: str, n: int, writers: int) -> dict[str, Any]:
    from recollect.store.postgres.postgres_store import open_postgres

    messages = conversation.messages(n)
    async with open_postgres(url) as store:
        sessions = [(await store.create()).id for _ in range(writers)]

        async def write(session: str) -> None:
            head = None
            for message in messages:
                head = (await store.append(session, [message], parent=head))[-1].id

        await asyncio.gather(*map(write, [(await store.create()).id for _ in range(_WARM)]))
        began = time.perf_counter()
        await asyncio.gather(*map(write, sessions))
        took = time.perf_counter() - began
        for session in sessions:
            if (await store.session(session)).entries != n:
                raise AssertionError("entries are missing")
    return {"rate": n * writers / took}


async def read_pages(_: Path, url: str, n: int) -> dict[str, Any]:
    """Pages from all over a session of `n` entries."""
    from recollect.store.postgres.postgres_store import open_postgres

    async with open_postgres(url) as store:
        session, head = (await store.create()).id, None
        for start in range(0, n, 1_000):
            part = conversation.messages(min(1_000, n - start), start)
            head = (await store.append(session, part, parent=head))[-1].id
        await store.index_now()
        took = []
        for start in range(0, n - _PAGE, max(1, n // 100)):
            began = time.perf_counter()
            found = await store.page(session, start=start, limit=_PAGE)
            took.append(time.perf_counter() - began)
            assert len(found) == _PAGE
    return {"median": statistics.median(took), "slowest": max(took)}


def postgres(setting: Setting) -> Table:
    try:
        # late: a server in a wheel, which only this measurement needs
        from tests.postgres_server import running_postgres
    except ImportError as error:
        raise Failed(f"no PostgreSQL: {error}") from error
    rows: list[Row] = []
    with running_postgres() as server:
        url = server.new_url()
        rows += (_appends(setting, url, writers) for writers in (1, _WRITERS))
        entries = setting.scale.windows[-1]
        progress(f"pages of a session of {entries:,}")
        found = run("postgres", "read_pages", setting.disk, url=url, n=entries)
        rows.append(
            Row(
                f"page of {_PAGE} out of {entries:,}, median",
                found["median"] * 1e3,
                10.0,
                f"slowest: {seconds(found['slowest'])}",
                unit=" ms",
                rounds=found,
            )
        )
    note = (
        "Appends a second, ours to raw: one session for each writer, all in one process. Ours"
        " checks the head, hashes, compresses, routes and marks for the index, which follows in the"
        " background during the run. Raw before and after each, median of the rounds."
    )
    return Table("postgres", "Appends and pages on PostgreSQL", note, tuple(rows))


def _appends(setting: Setting, url: str, writers: int) -> Row:
    n = setting.scale.singles[0] if writers == 1 else max(10, setting.scale.singles[0] // 10)
    rates: list[dict[str, float]] = []
    for number in range(setting.scale.rounds):
        progress(f"PostgreSQL, {writers} writers × {n}, round {number + 1}")

        def rate(task: str) -> float:
            return float(run("postgres", task, setting.disk, url=url, n=n, writers=writers)["rate"])

        before, mine, after = rate("append_raw"), rate("append_ours"), rate("append_raw")
        rates.append({"raw": (before + after) / 2, "ours": mine})
    ratio = statistics.median(each["ours"] / each["raw"] for each in rates)
    raw = statistics.median(each["raw"] for each in rates)
    what = "1 writer" if writers == 1 else f"{writers} writers"
    return Row(
        f"appends a second, {what}", ratio, 0.6, f"{raw:,.0f}/s", rounds=rates, at_least=True
    )
