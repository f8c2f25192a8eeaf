"""Parts of a session that `recollect show` can show: the first message, or what may be sent.

What may be sent comes as entries with the message as the model sees it, placeholders and all; in
the store nothing is different.
"""

from __future__ import annotations

from recollect.cli.context_report import load_report
from recollect.cli.session_excerpt import EntryWindow, SessionExcerpt, ShowOptions
from recollect.cli.store_access import ENTRY_DIGITS, find_entry, find_session_or_entry, shorten_ids
from recollect.entries import Entry, Message
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore


async def read_curated(store: SqliteStore, wanted: ShowOptions) -> SessionExcerpt:
    session, marked = await find_session_or_entry(store, wanted.prefix)
    sight = await load_report(store, session, wanted.at)
    sent = tuple(
        Entry(item.entry.id, item.entry.parent, item.entry.time, item.message)
        for item in sight.view.items
    )
    newest = sent[-wanted.last :] if wanted.last else sent
    window = EntryWindow(newest, before=len(sent) - len(newest))
    return _excerpt(session, sight.session_id, window, marked)


async def read_initial(store: SqliteStore, wanted: ShowOptions) -> SessionExcerpt:
    """The initial context where there is one, else the first message."""
    from recollect.cli.store_access import shorten_session_id

    session, marked = await find_session_or_entry(store, wanted.prefix)
    at = None if wanted.at is None else await find_entry(store, wanted.at, session)
    path = await store.path(session.id, at=at, damaged="mark") if session.head else ()
    messages = [entry for entry in path if isinstance(entry.body, Message)]
    initial = [e for e in messages if isinstance(e.body, Message) and e.body.context == "initial"]
    first = (initial or messages)[:1]
    return _excerpt(
        session, await shorten_session_id(store, session.id), EntryWindow(tuple(first)), marked
    )


def _excerpt(
    session: SessionInfo, short: str, window: EntryWindow, marked: Entry | None
) -> SessionExcerpt:
    ids = shorten_ids([*(entry.id for entry in window.entries), session.id], ENTRY_DIGITS)
    return SessionExcerpt(session, window, (), marked.id if marked else None, short, ids)
