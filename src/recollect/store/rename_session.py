"""Renaming a session, in any store: the title is an entry like any other."""

from __future__ import annotations

from contextlib import suppress

from recollect.entries import Title
from recollect.errors import BadInput, HeadMoved
from recollect.store.contract import SessionInfo, Store
from recollect.store.session_rows import clean_title


async def rename_session(store: Store, session: str, title: str) -> SessionInfo:
    """Append the title, again if others append meanwhile."""
    if not clean_title(title):
        raise BadInput("a title needs at least one visible character")
    while True:
        current = await store.session(session)
        with suppress(HeadMoved):
            await store.append(current.id, [Title(title=title)], parent=current.head)
            return await store.session(session)
