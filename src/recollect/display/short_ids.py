"""Ids as users read and type them.

Printed are the last digits of an id, which are random: as many as no other id in the store ends or
begins with, and at least eight. Typed may be any beginning or end that is unambiguous.
"""

from __future__ import annotations

from contextlib import suppress

from recollect.display.dates import format_time
from recollect.display.display_text import one_line, truncate
from recollect.display.entry_summary import role_of, summarize
from recollect.entries import Entry
from recollect.errors import AmbiguousId, NotFound, RecollectError, UnknownEntry, UnknownSession
from recollect.store.contract import SessionInfo, Store
from recollect.text import clip
from recollect.transcripts.find_session import session_by_id

_WRAPPING = " \t\n[]()<>\"'`.,;:"  # what stands around an id where it was copied from
_MAX_SHOWN, _MAX_LISTED, _LINE = 60, 8, 100


class UnknownId(NotFound):
    def __init__(self, given: str) -> None:
        super().__init__(
            f"no session and no entry {clip(given, _MAX_SHOWN)!r}; "
            "`recollect sessions --all` lists the sessions"
        )
        self.given = given


class SeveralFound(RecollectError):
    """An id that is not enough; the message has a line for each that it may mean."""

    def __init__(self, given: str, lines: list[str]) -> None:
        more = ["  …"] if len(lines) > _MAX_LISTED else []
        listed = "\n".join([*(f"  {line}" for line in lines[:_MAX_LISTED]), *more])
        super().__init__(f"{given!r} may be any of these; give one of their ids:\n{listed}")
        self.given = given


async def find_entry(store: Store, given: str | None, session: SessionInfo) -> str | None:
    """The id of an entry of a session, or one that it shares as a fork; None if none is named."""
    return None if given is None else (await _entry(store, given, session.id))[1].id


async def find_session_or_entry(store: Store, given: str) -> tuple[SessionInfo, Entry | None]:
    """The session with this id, or else the entry together with its session; also with the brackets
    and commas around it that were copied along."""
    bare = given.strip(_WRAPPING)
    for one in dict.fromkeys((given, bare or given)):
        try:
            return await _find_session(store, one), None
        except UnknownSession:
            with suppress(UnknownEntry):
                return await _entry(store, one)
    raise UnknownId(given)


async def find_by_id(store: Store, given: str) -> SessionInfo:
    """The session with this id; one that is not enough is an error that lists what it may mean."""
    return await _find_session(store, given.strip(_WRAPPING) or given)


async def _find_session(store: Store, given: str) -> SessionInfo:
    try:
        return await session_by_id(store, given)
    except AmbiguousId as vague:
        short = await store.short_session_ids(vague.candidates)
        titles = zip(vague.candidates, vague.titles, strict=True)
        lines = [f"{short[key]}  {one_line(title) or '(no title)'}" for key, title in titles]
        raise SeveralFound(given, lines) from None


async def _entry(store: Store, given: str, session: str | None = None) -> tuple[SessionInfo, Entry]:
    try:
        return await store.entry(given, session=session)
    except AmbiguousId as vague:
        short = await store.short_entry_ids(vague.candidates)
        entries = [(await store.entry(key))[1] for key in vague.candidates]
        lines = [f"{short[entry.id]}  {_describe(entry)}" for entry in entries]
        raise SeveralFound(given, lines) from None


def _describe(entry: Entry) -> str:
    about = f"{role_of(entry.body)}, {format_time(entry.time)}"
    return truncate(f"{about}: {summarize(entry.body)}", _LINE)


async def shorten_session_id(store: Store, session: str) -> str:
    """The end that identifies this session in the whole store."""
    return (await store.short_session_ids([session]))[session]


async def shorten_entry_id(store: Store, entry: str) -> str:
    """The end that identifies this entry, and no session, in the whole store."""
    return (await store.short_entry_ids([entry]))[entry]
