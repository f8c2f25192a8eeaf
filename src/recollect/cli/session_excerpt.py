"""The part of a session that `recollect show` prints: its path, all branches, an entry with the
other half of its exchange or with its neighbours, the initial context, or what a provider may be
sent.

Where entries are missing, the rest is read, and `EntryWindow.problem` says what is wrong.
"""

from __future__ import annotations

from typing import NamedTuple

import click

from recollect.cli.session_choice import find_session
from recollect.display.short_ids import find_entry, find_session_or_entry, shorten_session_id
from recollect.entries import Entry, Message, Note
from recollect.errors import Damaged, UnknownEntry
from recollect.runtime.runtime import Runtime
from recollect.store.contract import SessionInfo, Store
from recollect.store.ids import LAST
from recollect.store.log_reader import QUARANTINED, UNREADABLE
from recollect.store.output_notes import output_part, read_output_parts
from recollect.store.readable_text import calls_of
from recollect.view.view import View
from recollect.view_loader import load_view

_DAMAGED = tuple(Note(text=text, level="error") for text in (QUARANTINED, UNREADABLE))


class ShowOptions(NamedTuple):
    given: str  # the id of a session or an entry, or `last`
    around: int | None
    last: int | None
    at: str | None
    tree: bool
    initial: bool
    curated: bool
    full: bool
    turns: int | None


class EntryWindow(NamedTuple):
    """Some entries of a path, and how many there are before and after them."""

    entries: tuple[Entry, ...]
    before: int = 0
    after: int = 0
    off_path: bool = False  # the head is on another branch
    problem: str = ""
    alone: bool = False  # one entry, and the other half of its exchange


class SessionExcerpt(NamedTuple):
    session: SessionInfo
    window: EntryWindow
    every: tuple[Entry, ...]  # all branches, for the tree
    marked: str | None
    session_id: str  # short
    entry_ids: dict[str, str]  # short

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple({entry.id: entry for entry in (*self.window.entries, *self.every)}.values())

    @property
    def damaged(self) -> frozenset[str]:
        return frozenset(entry.id for entry in self.entries if entry.body in _DAMAGED)


async def _find(store: Store, given: str) -> tuple[SessionInfo, Entry | None]:
    if given == LAST:
        return await find_session(store, given), None
    return await find_session_or_entry(store, given)


async def read_excerpt(store: Store, options: ShowOptions) -> SessionExcerpt:
    session, marked = await _find(store, options.given)
    short = await shorten_session_id(store, session.id)
    _refuse_contradiction(options, marked, short)
    at = await find_entry(store, options.at, session)
    if options.curated:
        window = await _read_curated(store, session, at, options.last)
    elif options.initial:
        window = await _read_initial(store, session, at)
    elif marked is not None and options.around is not None:
        window = await _read_neighbours(store, session, marked, options.around)
    elif marked is not None:
        window = await _read_exchange(store, session, marked)
    else:
        window = await _read_path(store, session, at, options.last)
    every = await store.tree(session.id, damaged="mark") if options.tree else ()
    return SessionExcerpt(
        session=session,
        window=window,
        every=every,
        marked=marked.id if marked else None,
        session_id=short,
        entry_ids=await store.short_entry_ids(entry.id for entry in (*window.entries, *every)),
    )


def _refuse_contradiction(options: ShowOptions, marked: Entry | None, session: str) -> None:
    if marked is None:
        if options.around is not None:
            raise click.UsageError(
                f"--around shows the neighbours of an entry; {options.given!r} is a session."
            )
        return
    given = {
        "--last counts from the end of": options.last,
        "--turns counts from the end of": options.turns,
        "--tree shows the branches of": options.tree,
        "--initial shows the beginning of": options.initial,
        "--curated shows the messages of": options.curated,
        "--at shows an earlier state of": options.at,
    }
    for does in [does for does, wanted in given.items() if wanted]:
        raise click.UsageError(
            f"{does} a session; {options.given!r} is an entry, of session {session}. "
            "--around N shows the entries before and after it."
        )


async def read_turns(runtime: Runtime, options: ShowOptions) -> SessionExcerpt:
    """The newest turns, as the model sees them."""
    assert options.turns is not None
    store = runtime.store
    info, marked = await _find(store, options.given)
    short = await shorten_session_id(store, info.id)
    _refuse_contradiction(options, marked, short)
    session = await runtime.session(info.id)
    sent = _sent_entries(session.view())
    newest = sent[len(sent) - len(session.last_turns(options.turns)) :]
    return SessionExcerpt(
        session=info,
        window=EntryWindow(newest, before=len(sent) - len(newest)),
        every=(),
        marked=marked.id if marked else None,
        session_id=short,
        entry_ids=await store.short_entry_ids(entry.id for entry in newest),
    )


def _sent_entries(view: View) -> tuple[Entry, ...]:
    """Messages as the model sees them, placeholders included, in the shape of entries."""
    items = ((item.entry, item.message) for item in view.items)
    return tuple(Entry(entry.id, entry.parent, entry.time, message) for entry, message in items)


async def _read_curated(
    store: Store, session: SessionInfo, at: str | None, last: int | None
) -> EntryWindow:
    sent = _sent_entries(await load_view(store, session.id, at=at))
    newest = sent[-last:] if last else sent
    return EntryWindow(newest, before=len(sent) - len(newest))


async def _read_initial(store: Store, session: SessionInfo, at: str | None) -> EntryWindow:
    """The initial context, or the first message where there is none."""
    path = await store.path(session.id, at=at, damaged="mark") if session.head else ()
    messages = [(entry, entry.body) for entry in path if isinstance(entry.body, Message)]
    initial = [entry for entry, message in messages if message.context == "initial"]
    return EntryWindow(tuple((initial or [entry for entry, _ in messages])[:1]))


async def _read_path(
    store: Store, session: SessionInfo, at: str | None, last: int | None
) -> EntryWindow:
    try:
        entries = await store.path(session.id, at=at, last=last, damaged="mark")
        return EntryWindow(entries, before=0 if at else session.entries - len(entries))
    except Damaged as damage:
        problem = str(damage)
    try:  # the head is lost: read the path to the newest entry that is there
        end = at or session.head
        entries = await store.path(session.id, at=end, last=last, damaged="mark")
    except Damaged:  # the path is broken: read everything that is left
        entries = await store.tree(session.id, damaged="mark")
        entries = entries[-last:] if last else entries
    return EntryWindow(entries, problem=problem)


async def _read_exchange(store: Store, session: SessionInfo, entry: Entry) -> EntryWindow:
    """The entry, after the call that it answers, or before the results of its calls; of a command's
    output also the parts before it."""
    off_path, problem = False, ""
    try:
        await store.path(session.id, since=entry.id, damaged="mark")
    except UnknownEntry:
        off_path = True
    except Damaged as damage:
        problem = str(damage)
    others = await store.counterparts(entry)
    calls = tuple(other for other in others if calls_of(other) and not calls_of(entry))
    results = tuple(other for other in others if other not in calls)
    parts: tuple[Entry, ...] = (entry,)
    if output_part(entry.body) is not None:
        parts = await read_output_parts(store, session.id, entry)
    return EntryWindow((*calls, *parts, *results), off_path=off_path, problem=problem, alone=True)


async def _read_neighbours(
    store: Store, session: SessionInfo, entry: Entry, around: int
) -> EntryWindow:
    try:
        after = await store.path(session.id, since=entry.id, damaged="mark")
    except UnknownEntry:
        path = await store.path(session.id, at=entry.id, damaged="mark")
        before = path[-around - 1 :]
        return EntryWindow(before, len(path) - len(before), off_path=True)
    except Damaged as damage:
        before = await store.path(session.id, at=entry.id, last=around + 1, damaged="mark")
        return EntryWindow(before, problem=str(damage))
    before = await store.path(session.id, at=entry.id, last=around + 1, damaged="mark")
    return EntryWindow(
        (*before, *after[:around]),
        before=session.entries - len(after) - len(before),
        after=len(after[around:]),
    )
