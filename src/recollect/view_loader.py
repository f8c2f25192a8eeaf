"""Loads the view of a stored session, reading no more of the log than the view needs.

A compaction hides the entries before it, so only those from its `first_kept` on are read, and those
it names in `kept`: messages, and the pins that hold them. The newest entries are read first, in
growing windows, until the effective compaction is found. Where an edit refers to an entry outside
of these (an undone compaction, a pin of an old message), the whole path is read: the result is
always the fold of the whole path. Token counts are stored beside the log, so nothing is counted
twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

from recollect.entries import Compaction, Elide, Entry, Message, Pin, Restore
from recollect.errors import CannotWrite, UnknownEntry
from recollect.store.contract import Store
from recollect.store.output_notes import without_output
from recollect.tokens import ESTIMATE, Counter
from recollect.view.curation import CurationPolicy
from recollect.view.view import View

WINDOW = 512
LONG = 1_000  # entries: folding as many takes so long that a screen or a server would stall


async def load_view(
    store: Store,
    session: str,
    *,
    at: str | None = None,
    counter: Counter = ESTIMATE,
    policy: CurationPolicy | None = None,
    window: int = WINDOW,
) -> View:
    """The view at the session's head, or at an earlier entry."""
    entries = await read_needed_entries(store, session, at=at, window=window)
    return await fold_stored(store, entries, counter, policy)


async def fold_stored(
    store: Store, entries: Sequence[Entry], counter: Counter, policy: CurationPolicy | None = None
) -> View:
    """Fold stored entries into a view, with their tokens counted; new counts are saved."""
    entries = without_output(entries)
    if not counter.name:
        return View.fold(entries, counter=counter, policy=policy)
    known = await store.counts(counter.name, [entry.id for entry in entries])
    view = View.fold((), counter=counter, policy=policy, known=known)
    if len(entries) < LONG:
        view = _append_counted(view, entries)
    else:  # nobody else has this view yet
        view = await asyncio.to_thread(_append_counted, view, entries)
    await save_counts(store, view)
    return view


def _append_counted(view: View, entries: Sequence[Entry]) -> View:
    view = view.append(*entries)
    view.log.count(view.n)
    return view


async def save_counts(store: Store, view: View) -> None:
    """Store the counts that this view's log added; a read-only store goes without."""
    log = view.log
    if log.fresh:
        counted, log.fresh = log.fresh, {}
        with contextlib.suppress(CannotWrite):
            await store.keep_counts(log.counter.name, counted)


async def read_needed_entries(
    store: Store, session: str, *, at: str | None = None, window: int = WINDOW
) -> tuple[Entry, ...]:
    """The entries that the view at this point depends on, oldest first; the newest `window` are
    read first."""
    while True:
        newest = await store.path(session, at=at, last=window)
        if len(newest) < window:
            return newest
        at = newest[-1].id  # fixed, also when others append
        compaction = _effective_compaction(newest)
        if compaction is not None:
            return await _read_since(store, session, at, newest, compaction)
        window *= 4


def _effective_compaction(newest: Sequence[Entry]) -> Entry | None:
    undone: set[str] = set()
    for entry in reversed(newest):
        body = entry.body
        if isinstance(body, Restore):
            undone.update(body.entries)
        if not isinstance(body, Compaction) or entry.id in undone:
            continue
        if body.status == "COMPRESSED" and body.snapshot.strip():
            return entry
    return None


async def _read_since(
    store: Store, session: str, at: str | None, newest: tuple[Entry, ...], compaction: Entry
) -> tuple[Entry, ...]:
    body = compaction.body
    assert isinstance(body, Compaction)
    first = body.first_kept or compaction.id
    places = {entry.id: number for number, entry in enumerate(newest)}
    if body.first_kept and places.get(first, -1) >= places[compaction.id]:
        return await store.path(session, at=at)  # it keeps from a later entry: without effect
    try:
        if first in places:
            tail = newest[places[first] :]
        else:
            _, begin = await store.entry(first, session=session)
            tail = await store.path(session, at=at, since=begin.parent)
        known = {entry.id for entry in tail}
        kept = [key for key in body.kept if key not in known]
        before = [(await store.entry(key, session=session))[1] for key in kept]
    except UnknownEntry:  # it names an entry that does not exist, so it has no effect
        return await store.path(session, at=at)
    if not _referenced(tail) <= known.union(body.kept):
        return await store.path(session, at=at)
    before.sort(key=lambda entry: not isinstance(entry.body, Message))  # then pins, which name them
    return (*before, *tail)


def _referenced(entries: Iterable[Entry]) -> set[str]:
    """The ids of all entries that edits refer to."""
    found: set[str] = set()
    for entry in entries:
        if isinstance(entry.body, Elide):
            found.update(what.entry for what in entry.body.items)
        elif isinstance(entry.body, Pin | Restore):
            found.update(entry.body.entries)
    return found
