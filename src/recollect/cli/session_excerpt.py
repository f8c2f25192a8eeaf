"""What `recollect show` shows of a session: its path, its end, all branches, or an entry's place.

Where entries are missing, what is still there is read, and `error_from` says what is wrong.
"""

from __future__ import annotations

from typing import NamedTuple

from recollect.cli.store_access import (
    ENTRY_DIGITS,
    find_entry,
    find_session_or_entry,
    shorten_ids,
    shorten_session_id,
)
from recollect.entries import Entry, Note
from recollect.errors import Damaged, UnknownEntry
from recollect.store.contract import SessionInfo
from recollect.store.log_reader import QUARANTINED, UNREADABLE
from recollect.store.sqlite import SqliteStore

NEIGHBOURS = 5  # entries shown before and after the one that was jumped to
_DAMAGED = tuple(Note(text=text, level="error") for text in (QUARANTINED, UNREADABLE))


class ShowOptions(NamedTuple):
    """What the person asked for."""

    prefix: str
    last: int | None = None
    at: str | None = None
    tree: bool = False


class EntryWindow(NamedTuple):
    """Some of a path's entries, and how many there are beyond them."""

    entries: tuple[Entry, ...]
    before: int = 0
    after: int = 0
    aside: bool = False  # the head has left the branch these are on
    problem: str = ""


class SessionExcerpt(NamedTuple):
    session: SessionInfo
    window: EntryWindow
    every: tuple[Entry, ...]  # all branches, when the tree is wanted
    marked: str | None
    session_id: str  # short
    entry_ids: dict[str, str]  # short

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple({entry.id: entry for entry in (*self.window.entries, *self.every)}.values())

    @property
    def damaged(self) -> frozenset[str]:
        return frozenset(entry.id for entry in self.entries if entry.body in _DAMAGED)


async def read_excerpt(store: SqliteStore, wanted: ShowOptions) -> SessionExcerpt:
    session, marked = await find_session_or_entry(store, wanted.prefix)
    at = None if wanted.at is None else await find_entry(store, wanted.at, session)
    if marked is not None and not (wanted.tree or wanted.last or at):
        window = await _read_neighbours(store, session, marked)
    else:
        window = await _read_path(store, session, at, wanted.last)
    every = await store.tree(session.id, damaged="mark") if wanted.tree else ()
    ids = [entry.id for entry in (*window.entries, *every)]
    return SessionExcerpt(
        session=session,
        window=window,
        every=every,
        marked=marked.id if marked else None,
        session_id=await shorten_session_id(store, session.id),
        entry_ids=shorten_ids([*ids, session.id], ENTRY_DIGITS),
    )


async def _read_path(
    store: SqliteStore, session: SessionInfo, at: str | None, last: int | None
) -> EntryWindow:
    try:
        entries = await store.path(session.id, at=at, last=last, damaged="mark")
        return EntryWindow(entries, before=0 if at else session.entries - len(entries))
    except Damaged as damage:
        problem = str(damage)
    try:  # the end is lost: the path to the newest entry that is there
        end = at or session.head
        entries = await store.path(session.id, at=end, last=last, damaged="mark")
    except Damaged:  # the way is broken: everything that is left of it
        entries = await store.tree(session.id, damaged="mark")
        entries = entries[-last:] if last else entries
    return EntryWindow(entries, problem=problem)


async def _read_neighbours(store: SqliteStore, session: SessionInfo, entry: Entry) -> EntryWindow:
    try:
        after = await store.path(session.id, since=entry.id, damaged="mark")
    except UnknownEntry:
        before = await store.path(session.id, at=entry.id, damaged="mark")
        return EntryWindow(
            before[-NEIGHBOURS - 1 :], max(0, len(before) - NEIGHBOURS - 1), aside=True
        )
    except Damaged as damage:
        before = await store.path(session.id, at=entry.id, last=NEIGHBOURS + 1, damaged="mark")
        return EntryWindow(before, problem=str(damage))
    before = await store.path(session.id, at=entry.id, last=NEIGHBOURS + 1, damaged="mark")
    return EntryWindow(
        (*before, *after[:NEIGHBOURS]),
        before=session.entries - len(after) - len(before),
        after=len(after[NEIGHBOURS:]),
    )
