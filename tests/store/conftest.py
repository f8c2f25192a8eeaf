from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from recollect.store.contract import Store
from tests.both_stores import OpenStore
from tests.store.stories import Play, T


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
