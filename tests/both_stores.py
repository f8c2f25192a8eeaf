"""Fixtures that run a test on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias, TypeVar

import pytest

from recollect.engine import open_store
from recollect.store.contract import Store
from recollect.store.postgres.postgres_store import open_postgres

T = TypeVar("T")
OpenStore: TypeAlias = Callable[[], AbstractAsyncContextManager[Store]]
NewStore: TypeAlias = Callable[[], OpenStore]


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


def in_opened(reopen: OpenStore, work: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store, run `work`, close it."""

    async def run() -> T:
        async with reopen() as store:
            return await work(store)

    return asyncio.run(run())
