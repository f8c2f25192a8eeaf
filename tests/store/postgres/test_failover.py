"""A primary that fails over to its replica loses nothing that was acknowledged."""

from __future__ import annotations

import asyncio
import time

import psycopg

from recollect.store.postgres.postgres_store import open_postgres
from tests.postgres_server import PostgresServer, running_postgres
from tests.store.postgres.test_lost_connections import write_until
from tests.store.stories import texts


def wait_for_replica(primary: PostgresServer) -> None:
    """Every commit waits for the replica from now on."""
    with psycopg.connect(primary.url(), autocommit=True) as db:
        db.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        db.execute("SELECT pg_reload_conf()")
        state = "SELECT sync_state FROM pg_stat_replication"
        deadline = time.monotonic() + 60
        while db.execute(state).fetchall() != [("sync",)]:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_every_acknowledged_append_is_on_the_replica_that_takes_over() -> None:
    async def story() -> None:
        with running_postgres() as primary, running_postgres(follows=primary) as replica:
            schema = primary.new_schema()
            wait_for_replica(primary)
            hosts = f"127.0.0.1:{primary.port},127.0.0.1:{replica.port}"
            options = f"target_session_attrs=read-write&options=-csearch_path%3D{schema}"
            url = f"postgresql://postgres@{hosts}/postgres?{options}"
            async with open_postgres(url) as store:
                done = asyncio.Event()
                tasks = [asyncio.create_task(write_until(store, done)) for _ in range(10)]
                await asyncio.sleep(1.0)
                await asyncio.to_thread(primary.stop, "immediate")
                await asyncio.to_thread(replica.promote)
                await asyncio.sleep(1.0)
                done.set()
                for session, acknowledged in await asyncio.gather(*tasks):
                    assert acknowledged
                    assert texts(await store.path(session)) == acknowledged
                assert await store.check() == ()

    asyncio.run(story())
