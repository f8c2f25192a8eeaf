"""Parts of a session that `recollect show` can show: the first message, or what may be sent.

What may be sent comes as entries with the message as the model sees it, placeholders and all; in
the store nothing is different.
"""

from __future__ import annotations

from recollect.cli.opening import ENTRY_DIGITS, find_entry, session_or_entry, short_ids
from recollect.cli.reading import Shown, Wanted, Window
from recollect.cli.seeing import look
from recollect.entries import Entry, Message
from recollect.store.contract import SessionInfo
from recollect.store.sqlite import SqliteStore


async def read_curated(store: SqliteStore, wanted: Wanted) -> Shown:
    session, marked = await session_or_entry(store, wanted.prefix)
    sight = await look(store, session, wanted.at)
    sent = tuple(
        Entry(item.entry.id, item.entry.parent, item.entry.time, item.message)
        for item in sight.view.items
    )
    newest = sent[-wanted.last :] if wanted.last else sent
    window = Window(newest, before=len(sent) - len(newest))
    return _shown(session, sight.session_id, window, marked)


async def read_initial(store: SqliteStore, wanted: Wanted) -> Shown:
    """The initial context where there is one, else the first message."""
    from recollect.cli.opening import short_session

    session, marked = await session_or_entry(store, wanted.prefix)
    at = None if wanted.at is None else await find_entry(store, wanted.at, session)
    path = await store.path(session.id, at=at, damaged="mark") if session.head else ()
    messages = [entry for entry in path if isinstance(entry.body, Message)]
    initial = [e for e in messages if isinstance(e.body, Message) and e.body.context == "initial"]
    first = (initial or messages)[:1]
    return _shown(session, await short_session(store, session.id), Window(tuple(first)), marked)


def _shown(session: SessionInfo, short: str, window: Window, marked: Entry | None) -> Shown:
    ids = short_ids([*(entry.id for entry in window.entries), session.id], ENTRY_DIGITS)
    return Shown(session, window, (), marked.id if marked else None, short, ids)
