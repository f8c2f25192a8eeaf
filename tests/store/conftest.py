from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from recollect.engine import open_store
from recollect.store.contract import Store
from recollect.store.postgres.postgres_store import open_postgres
from tests.store.stories import NewStore, OpenStore, Play, T


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def new_store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewStore:
    """Makes a store of its own, to be opened again and again."""

    def in_file() -> OpenStore:
        path = tmp_path_factory.mktemp("home") / "store" / "store.db"
        return lambda: open_store(path)

    def in_database() -> OpenStore:
        url = request.getfixturevalue("postgres").new_url()
        return lambda: open_postgres(url)

    return in_file if request.param == "sqlite" else in_database


@pytest.fixture
def reopen(new_store: NewStore) -> OpenStore:
    """Opens one store, again and again."""
    return new_store()


@pytest.fixture
def play(reopen: OpenStore) -> Play[T]:
    """Runs a story on a store of its own; each call opens the store anew."""

    def run(story: Callable[[Store], Awaitable[T]]) -> T:
        async def opened() -> T:
            async with reopen() as store:
                done = await story(store)
                assert store.warnings == []
                return done

        return asyncio.run(opened())

    return run
