"""A handle on one session of a store: where it is, and its view at the head.

A `Session` is a value. `append` returns the session as it is afterwards, or raises `HeadMoved` when
another writer appended since the view was read.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from recollect.entries import Body, Entry
from recollect.store.contract import Store
from recollect.store.sqlite import open_store
from recollect.tokens import counter_for
from recollect.view.view import View


class Session(NamedTuple):
    store: Store
    id: str
    view: View

    async def append(self, *items: Body | Entry) -> Session:
        entries = await self.store.append(self.id, items, parent=self.view.head)
        return self._replace(view=self.view.append(*entries))

    async def reload(self) -> Session:
        """Read the entries that were appended after this view's head."""
        new = await self.store.path(self.id, since=self.view.head)
        return self._replace(view=self.view.append(*new))


@asynccontextmanager
async def new_session(model: str) -> AsyncIterator[Session]:
    """Create a session in the user's own store, with tokens counted for this model."""
    async with open_store() as store:
        created = await store.create()
        yield Session(store, created.id, View.fold(counter=counter_for(model)))
