"""Ids as users read and type them.

Printed are the last digits of an id, which are random: as many as no other id in the store ends or
begins with, and at least eight. Typed may be any beginning or end that is unambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable

from recollect.entries import Entry
from recollect.errors import NotFound, UnknownEntry, UnknownSession
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.find_session import session_by_id

MIN_DIGITS = 8


class UnknownId(NotFound):
    def __init__(self, given: str) -> None:
        super().__init__(
            f"no session and no entry {given!r}; `recollect sessions --all` lists the sessions"
        )
        self.given = given


async def find_entry(store: SqliteStore, given: str | None, session: SessionInfo) -> str | None:
    """The id of an entry of a session, or one that it shares as a fork; None if none is named."""
    return None if given is None else (await store.entry(given, session=session.id))[1].id


async def find_session_or_entry(store: SqliteStore, given: str) -> tuple[SessionInfo, Entry | None]:
    """The session with this id, or else the entry together with its session."""
    try:
        return await session_by_id(store, given), None
    except UnknownSession:
        try:
            return await store.entry(given)
        except UnknownEntry:
            raise UnknownId(given) from None


def shorten_ids(ids: Iterable[str], digits: int) -> dict[str, str]:
    """Each id's shortest end, of at least `digits`, that no other of them has."""
    ordered = sorted({each[::-1] for each in ids})
    short = {}
    for before, this, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_common_prefix(before, this), _common_prefix(this, after))
        short[this[::-1]] = this[: max(digits, shared + 1)][::-1]
    return short


def _common_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def shorten_entry_ids(entries: Iterable[Entry], session: str) -> dict[str, str]:
    """Short ids of entries for commands that name their session as well."""
    return shorten_ids([*(entry.id for entry in entries), session], MIN_DIGITS)


async def shorten_session_id(store: SqliteStore, session: str) -> str:
    """The end that identifies this session in the whole store."""
    return (await store.short_session_ids([session]))[session]


async def shorten_entry_id(store: SqliteStore, entry: str) -> str:
    """The end that identifies this entry, and no session, in the whole store."""
    return (await store.short_entry_ids([entry]))[entry]
