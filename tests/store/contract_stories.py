"""The tests of the contract as functions, to be run on a store that is set up in another way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from recollect.store.contract import Store
from tests.both_stores import NewStore
from tests.store import (
    test_contract_adopting,
    test_contract_appends,
    test_contract_owners,
    test_contract_pages,
    test_contract_sessions,
    test_contract_waiting,
    test_full_text_search,
    test_ranked_search,
)

_MODULES = (
    test_contract_adopting,
    test_contract_appends,
    test_contract_owners,
    test_contract_pages,
    test_contract_sessions,
    test_contract_waiting,
    test_full_text_search,
    test_ranked_search,
)
_FIXTURES = {"play", "reopen", "new_store"}


def contract_stories() -> dict[str, Callable[..., None]]:
    """By name: those that need nothing but a store."""
    found = {
        name: test
        for module in _MODULES
        for name, test in vars(module).items()
        if name.startswith("test_") and not hasattr(test, "is_hypothesis_test")
    }
    return {
        name: test
        for name, test in found.items()
        if (wanted := set(inspect.signature(test).parameters)) and wanted <= _FIXTURES
    }


def run_story(story: Callable[..., None], new_store: NewStore) -> None:
    reopen = new_store()

    def play(work: Callable[[Store], Awaitable[Any]]) -> Any:
        async def opened() -> Any:
            async with reopen() as store:
                return await work(store)

        return asyncio.run(opened())

    given = {"play": play, "reopen": reopen, "new_store": new_store}
    story(**{name: given[name] for name in inspect.signature(story).parameters})
