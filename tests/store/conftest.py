from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from recollect.engine import open_store
from recollect.store.sqlite import SqliteStore
from tests.store.stories import Play, T


@pytest.fixture
def play(tmp_path: Path) -> Play[T]:
    """Runs a story on a store in a file of its own; each call opens the store anew."""

    def run(story: Callable[[SqliteStore], Awaitable[T]]) -> T:
        async def opened() -> T:
            async with open_store(tmp_path / "home" / "store.db") as store:
                done = await story(store)
                assert store.warnings == []
                return done

        return asyncio.run(opened())

    return run
