"""A session's view for a command: at its head or as it was, counted for the model it talks to.

Reading writes nothing. The model is the known one that spoke last, unless a person names another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recollect.cli.store_access import ENTRY_DIGITS, shorten_ids, shorten_session_id
from recollect.entries import Entry, Message, Request, Usage
from recollect.profiles import Profile, find_profile, is_known_model
from recollect.store.contract import SessionInfo, Store
from recollect.store.sqlite import SqliteStore
from recollect.tokens import counter_for
from recollect.view.view import View
from recollect.view_loader import fold_stored, load_view, read_needed_entries


class RequestCost(NamedTuple):
    """What a provider counted for a request, and what we count for the same."""

    entry: Entry
    usage: Usage
    estimate: int


class ContextReport(NamedTuple):
    session: SessionInfo
    session_id: str  # short
    view: View
    model: str
    before: View | None = None  # the view before the compaction in force
    cost: RequestCost | None = None
    asked: Entry | None = None  # where to look, when it is not the head

    @property
    def profile(self) -> Profile:
        return find_profile(self.model)

    @property
    def short(self) -> dict[str, str]:
        """Short ids of all entries that it depends on."""
        ids = [entry.id for entry in self.view.entries]
        return shorten_ids([*ids, self.session.id], ENTRY_DIGITS)


async def load_report(
    store: SqliteStore, session: SessionInfo, at: str | None = None, named: str | None = None
) -> ContextReport:
    """The view at the head, or at an entry given by the beginning of its id."""
    asked = None if at is None else (await store.entry(at, session=session.id))[1]
    entries = await _entries(store, session, asked)
    model = latest_model(entries) if named is None else named
    view = await fold_stored(store, entries, counter=counter_for(model))
    short = await shorten_session_id(store, session.id)
    return ContextReport(session, short, view, model, asked=asked)


async def _entries(store: Store, session: SessionInfo, asked: Entry | None) -> tuple[Entry, ...]:
    if asked is None:
        return await read_needed_entries(store, session.id) if session.head else ()
    if not isinstance(asked.body, Request):
        return await read_needed_entries(store, session.id, at=asked.id)
    # a request says itself which entry it was made at
    return (
        await read_needed_entries(store, session.id, at=asked.body.head) if asked.body.head else ()
    )


def latest_model(entries: Iterable[Entry]) -> str:
    """The newest known model that was asked or spoke; else the newest that was named at all."""
    bodies = [entry.body for entry in entries if isinstance(entry.body, Message | Request)]
    names = [body.model for body in reversed(bodies) if body.model]
    return next((name for name in names if is_known_model(name)), names[0] if names else "")


async def add_history(store: Store, sight: ContextReport) -> ContextReport:
    """The same, with what the last request cost and what the compaction in force replaced."""
    view, counter, session = sight.view, sight.view.log.counter, sight.session.id
    held, cost, before = view.compaction, None, None
    if held is not None and held.parent is not None:
        before = await load_view(store, session, at=held.parent, counter=counter)
    answer = _newest_with_usage(view)
    if answer is not None and isinstance(answer.body, Message) and answer.body.usage is not None:
        asked = answer.parent
        then = await load_view(store, session, at=asked, counter=counter) if asked else View.fold()
        cost = RequestCost(answer, answer.body.usage, then.tokens)
    return sight._replace(before=before, cost=cost)


def _newest_with_usage(view: View) -> Entry | None:
    for entry in reversed(view.entries):
        body = entry.body
        if isinstance(body, Message) and body.role == "model" and body.usage is not None:
            return entry
    return None
