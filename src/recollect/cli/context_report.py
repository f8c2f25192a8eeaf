"""What a model sees of a session, at the head or at an earlier entry, counted for that model.

Loading a report writes nothing. The model is the known one that replied last, unless the user names
another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from recollect.cli.short_ids import ENTRY_DIGITS, shorten_ids, shorten_session_id
from recollect.entries import Entry, Message, Request, Usage
from recollect.profiles import Profile, find_profile, is_known_model
from recollect.store.contract import SessionInfo, Store
from recollect.store.sqlite import SqliteStore
from recollect.tokens import counter_for
from recollect.view.omissions import COMPACTION, Omission, find_omissions, items_replaced
from recollect.view.view import View, ViewItem
from recollect.view_loader import fold_stored, load_view, read_needed_entries


class RequestCost(NamedTuple):
    """The provider's count for a request, and our count for the same messages."""

    reply: Entry
    usage: Usage
    our_count: int


class ContextReport(NamedTuple):
    session: SessionInfo
    session_id: str  # short
    view: View
    model: str
    at: Entry | None = None  # the earlier entry reported on; None for the head
    before_compaction: View | None = None
    last_request: RequestCost | None = None

    @property
    def profile(self) -> Profile:
        return find_profile(self.model)

    @property
    def short(self) -> dict[str, str]:
        """Short ids of the session and of every entry in the view."""
        ids = [entry.id for entry in self.view.entries]
        return shorten_ids([*ids, self.session.id], ENTRY_DIGITS)

    @property
    def replaced(self) -> tuple[ViewItem, ...]:
        """The items that the compaction in force replaced."""
        before = self.before_compaction
        return items_replaced(before, self.view) if before is not None else ()

    @property
    def omissions(self) -> list[Omission]:
        """Everything left out; for a compaction with our own count instead of its record's."""
        found = list(find_omissions(self.view))
        if self.before_compaction is not None and found and found[0].rule == COMPACTION:
            tokens = sum(item.tokens for item in self.replaced)
            found[0] = msgspec.structs.replace(found[0], tokens=tokens)
        return found


async def load_report(
    store: SqliteStore, session: SessionInfo, at: str | None = None, named: str | None = None
) -> ContextReport:
    """The report for the head, or for the entry whose id begins with `at`."""
    entry = None if at is None else (await store.entry(at, session=session.id))[1]
    entries = await _read_entries(store, session, entry)
    model = latest_model(entries) if named is None else named
    view = await fold_stored(store, entries, counter=counter_for(model))
    short = await shorten_session_id(store, session.id)
    return ContextReport(session, short, view, model, entry)


async def _read_entries(store: Store, session: SessionInfo, at: Entry | None) -> tuple[Entry, ...]:
    if at is None:
        return await read_needed_entries(store, session.id) if session.head else ()
    # a request records the head it was sent for
    head = at.body.head if isinstance(at.body, Request) else at.id
    return await read_needed_entries(store, session.id, at=head) if head else ()


def latest_model(entries: Iterable[Entry]) -> str:
    """The newest known model of a request or reply; without one, the newest that is named."""
    bodies = [entry.body for entry in entries if isinstance(entry.body, Message | Request)]
    names = [body.model for body in reversed(bodies) if body.model]
    return next((name for name in names if is_known_model(name)), names[0] if names else "")


async def add_history(store: Store, report: ContextReport) -> ContextReport:
    """The report with the cost of the last request and the view before the compaction in force."""
    view, counter, session = report.view, report.view.log.counter, report.session.id
    compaction, cost, before = view.compaction, None, None
    if compaction is not None and compaction.parent is not None:
        before = await load_view(store, session, at=compaction.parent, counter=counter)
    reply = _newest_with_usage(view)
    if reply is not None and isinstance(reply.body, Message) and reply.body.usage is not None:
        at = reply.parent
        sent = await load_view(store, session, at=at, counter=counter) if at else View.fold()
        cost = RequestCost(reply, reply.body.usage, sent.tokens)
    return report._replace(before_compaction=before, last_request=cost)


def _newest_with_usage(view: View) -> Entry | None:
    for entry in reversed(view.entries):
        body = entry.body
        if isinstance(body, Message) and body.role == "model" and body.usage is not None:
            return entry
    return None
