"""Ids as users read and type them: any unambiguous prefix of an id stands for the whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from recollect.entries import Entry
from recollect.errors import AmbiguousId, NotFound, UnknownEntry, UnknownSession
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore

SESSION_DIGITS = 8
ENTRY_DIGITS = 12  # an id begins with its millisecond, which takes this many digits


class UnknownId(NotFound):
    def __init__(self, prefix: str) -> None:
        super().__init__(
            f"no session and no entry {prefix!r}; `recollect sessions --all` lists the sessions"
        )
        self.prefix = prefix


async def find_entry(store: SqliteStore, prefix: str | None, session: SessionInfo) -> str | None:
    """The id of an entry of a session, or one that it shares as a fork; None if none is named."""
    return None if prefix is None else (await store.entry(prefix, session=session.id))[1].id


async def find_session_or_entry(
    store: SqliteStore, prefix: str
) -> tuple[SessionInfo, Entry | None]:
    """The session with this id, or else the entry together with its session."""
    try:
        return await store.session(prefix), None
    except UnknownSession:
        try:
            return await store.entry(prefix)
        except UnknownEntry:
            raise UnknownId(prefix) from None


def shorten_ids(ids: Iterable[str], digits: int) -> dict[str, str]:
    """Each id's shortest prefix, of at least `digits`, that no other of them has."""
    ordered = sorted(set(ids))
    short = {}
    for before, this, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_common_prefix(before, this), _common_prefix(this, after))
        short[this] = this[: max(digits, shared + 1)]
    return short


def _common_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def shorten_entry_ids(entries: Iterable[Entry], session: str) -> dict[str, str]:
    """Short ids of entries, which are not the session's either."""
    return shorten_ids([*(entry.id for entry in entries), session], ENTRY_DIGITS)


async def shorten_session_ids(store: SqliteStore) -> dict[str, str]:
    """The short id of every session, including those in the trash."""
    every = (*await store.sessions(), *await store.sessions(trashed=True))
    return shorten_ids((session.id for session in every), SESSION_DIGITS)


async def shorten_session_id(store: SqliteStore, session: str) -> str:
    """The prefix that identifies this session in the whole store."""
    return await _shortest_unique(session, SESSION_DIGITS, store.session)


async def shorten_entry_id(store: SqliteStore, entry: str) -> str:
    """The prefix that identifies this entry, and no session, in the whole store."""
    short = await _shortest_unique(entry, ENTRY_DIGITS, store.entry)
    try:
        await store.session(short)
    except UnknownSession:
        return short
    except AmbiguousId:
        pass
    return entry


async def _shortest_unique(
    whole: str, digits: int, find: Callable[[str], Awaitable[object]]
) -> str:
    short = whole[:digits]
    while len(short) < len(whole):
        try:
            await find(short)
            break
        except AmbiguousId as several:
            others = (other for other in several.candidates if other != whole)
            shared = (_common_prefix(whole, other) for other in others)
            short = whole[: max(len(short), *shared) + 1]
    return short
