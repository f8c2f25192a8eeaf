"""Opens the store for one command.

The store is closed before anything is printed, so that an open pager locks nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from recollect.cli.console import print_warning
from recollect.errors import CannotOpen, HeadMoved
from recollect.runtime.runtime import Door, Overrides, Runtime, open_runtime
from recollect.store.contract import Project, Store
from recollect.store.store_address import StoreAddress, parse_address
from recollect.workspace.project_identity import identify_project

T = TypeVar("T")
MAX_ATTEMPTS = 4


def use_store(
    file: StoreAddress | None, work: Callable[[Store], Awaitable[T]], *, make: bool = False
) -> T:
    """Run `work` on the runtime's store, for commands that call no model: they also work where the
    settings are wrong. A named file must exist, unless the command may `make` it."""

    async def on_store(runtime: Runtime) -> T:
        return await work(runtime.store)

    door = Door(warn=print_warning, accepts_bad_settings=True)
    return use_runtime(file, on_store, make=make, door=door)


def use_runtime(
    file: StoreAddress | None,
    work: Callable[[Runtime], Awaitable[T]],
    *,
    make: bool = False,
    door: Door | None = None,
    overrides: Overrides | None = None,
) -> T:
    """Run `work` with the runtime of the current folder; for the store as in `use_store`."""
    address = None if file is None else parse_address(file)
    if isinstance(address, Path) and not make and not address.exists():
        raise CannotOpen(str(file), "there is no such file")
    door, overrides = door or Door(warn=print_warning), overrides or Overrides()

    async def opened() -> T:
        async with open_runtime(Path.cwd(), address, door=door, overrides=overrides) as runtime:
            return await work(runtime)

    return asyncio.run(opened())


async def retry_on_head_moved(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work`, which reads and then appends, again when another writer appended in between."""
    for _ in range(MAX_ATTEMPTS - 1):
        with contextlib.suppress(HeadMoved):
            return await work()
    return await work()


def current_project() -> Project:
    return identify_project(Path.cwd())
