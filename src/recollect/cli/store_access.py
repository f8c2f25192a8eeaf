"""Opens the store for one command, and finds what a person means by an id.

The store is closed before anything is shown, so a pager that stays open keeps nothing locked.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from recollect.cli.console import print_warning
from recollect.errors import (
    AmbiguousId,
    CannotOpen,
    HeadMoved,
    NotFound,
    UnknownEntry,
    UnknownSession,
)

if TYPE_CHECKING:
    from recollect.entries import Entry
    from recollect.store.contract import Project, SessionInfo
    from recollect.store.sqlite import SqliteStore

T = TypeVar("T")
MAX_ATTEMPTS = 4
SESSION_DIGITS = 8
ENTRY_DIGITS = 12  # an id begins with its millisecond, which takes this many digits


def use_store(
    file: Path | None, work: Callable[[SqliteStore], Awaitable[T]], *, make: bool = False
) -> T:
    """Run `work` on the store. One that was named must exist, unless the command may `make` it."""
    if file is not None and not make and not file.exists():
        raise CannotOpen(str(file), "there is no such file")

    async def opened() -> T:
        from recollect.store.sqlite import open_store

        async with open_store(file) as store:
            try:
                return await work(store)
            finally:
                for warning in store.warnings:
                    print_warning(warning)

    return asyncio.run(opened())


async def retry_on_head_moved(work: Callable[[], Awaitable[T]]) -> T:
    """Read and write; once more from the start when somebody else wrote in between."""
    for _ in range(MAX_ATTEMPTS - 1):
        with contextlib.suppress(HeadMoved):
            return await work()
    return await work()


def current_project() -> Project:
    from recollect.workspace.project_identity import identify_project

    return identify_project(Path.cwd())


async def find_entry(store: SqliteStore, prefix: str, session: SessionInfo) -> str:
    """An entry of a session, or one that it shares as a fork, by the beginning of its id."""
    return (await store.entry(prefix, session=session.id))[1].id


async def find_session_or_entry(
    store: SqliteStore, prefix: str
) -> tuple[SessionInfo, Entry | None]:
    """What an id means: a session, or else an entry together with its session."""
    try:
        return await store.session(prefix), None
    except UnknownSession:
        try:
            return await store.entry(prefix)
        except UnknownEntry:
            raise UnknownId(prefix) from None


class UnknownId(NotFound):
    def __init__(self, prefix: str) -> None:
        super().__init__(
            f"no session and no entry {prefix!r}; `recollect sessions --all` lists the sessions"
        )
        self.prefix = prefix


def shorten_ids(ids: Iterable[str], digits: int) -> dict[str, str]:
    """Each id's shortest beginning, of at least so many digits, that no other of them has."""
    ordered = sorted(set(ids))
    short = {}
    for before, this, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_common_prefix(before, this), _common_prefix(this, after))
        short[this] = this[: max(digits, shared + 1)]
    return short


def _common_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


async def shorten_session_ids(store: SqliteStore) -> dict[str, str]:
    """The short id of every session, those in the trash included."""
    every = (*await store.sessions(), *await store.sessions(trashed=True))
    return shorten_ids((session.id for session in every), SESSION_DIGITS)


async def shorten_session_id(store: SqliteStore, session: str) -> str:
    """The beginning of a session's id that means this session in the whole store."""
    return await _shortest_unique(session, SESSION_DIGITS, store.session)


async def shorten_entry_id(store: SqliteStore, entry: str) -> str:
    """The beginning of an entry's id that means this entry, and no session, in the whole store."""
    short = await _shortest_unique(entry, ENTRY_DIGITS, store.entry)
    try:
        await store.session(short)
    except UnknownSession:
        return short
    except AmbiguousId:
        pass
    return entry


async def _shortest_unique(
    whole: str, digits: int, look: Callable[[str], Awaitable[object]]
) -> str:
    short = whole[:digits]
    while len(short) < len(whole):
        try:
            await look(short)
            break
        except AmbiguousId as several:
            shared = (
                _common_prefix(whole, other) for other in several.candidates if other != whole
            )
            short = whole[: max(len(short), *shared) + 1]
    return short


def abbreviate_home(path: str | None) -> str:
    """A project's path as people write it."""
    if not path:
        return ""
    home = str(Path.home())
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
