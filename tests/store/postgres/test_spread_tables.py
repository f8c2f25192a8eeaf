"""The contract on a PostgreSQL whose tables are spread over three servers, by tree."""

from __future__ import annotations

import asyncio

import pytest

from recollect.store.postgres.postgres_store import open_postgres
from recollect.testing import user
from tests.both_stores import OpenStore
from tests.store.contract_stories import contract_stories, run_story
from tests.store.postgres.spread_tables import (
    SHARDS,
    SpreadPostgres,
    binaries_with_fdw,
    spread_postgres,
)
from tests.store.postgres.test_many_servers import race_for_one_session


def test_the_contract_holds_on_tables_that_are_spread_over_three_servers() -> None:
    """One test, because starting four servers takes longer than all stories."""
    binaries = binaries_with_fdw()
    if binaries is None:
        pytest.skip("no PostgreSQL with postgres_fdw: `apt install postgresql` brings it")
    with spread_postgres(binaries) as spread:

        def new_store() -> OpenStore:
            url = spread.new_url()
            return lambda: open_postgres(url)

        for name, story in contract_stories().items():
            try:
                run_story(story, new_store)
            except Exception as error:
                error.add_note(f"in {name}")
                raise
        _check_spreading(spread)
        race_for_one_session(spread.new_url(), servers=2, tasks=2, count=5)


def _check_spreading(spread: SpreadPostgres) -> None:
    """Sessions are everywhere, forks stay with their tree."""
    url = spread.new_url()

    async def story() -> None:
        async with open_postgres(url) as store:
            for _ in range(60):
                session = await store.create()
                (entry,) = await store.append(session.id, [user("hi")], parent=None)
            assert min(spread.rows(url, "entries")) > 5
            before = spread.rows(url, "segments")
            for _ in range(20):
                await store.fork(session.id, at=entry.id)
            grown = [b - a for a, b in zip(before, spread.rows(url, "segments"), strict=True)]
            assert sorted(grown) == [0] * (SHARDS - 1) + [20]
            assert await store.check() == ()

    asyncio.run(story())
