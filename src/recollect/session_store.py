"""The sessions of a store: `async with recollect.open() as store`.

A store that a run opened for itself stays open as long as its event loop; a session that began
there can be continued in another event loop, where the store is opened anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias
from weakref import WeakKeyDictionary

from recollect.errors import NotFound, StoreClosed
from recollect.session import Session, open_session
from recollect.settings import load_settings
from recollect.store.contract import Project, SearchHit, SearchQuery, SessionInfo, Store
from recollect.store.ids import LAST
from recollect.store.open_store import open_store
from recollect.store.store_address import (
    StoreAddress,
    default_address,
    hide_password,
    parse_address,
)
from recollect.tokens import counter_for
from recollect.transcripts.find_session import latest_session, refuse_trashed, session_by_id
from recollect.transcripts.import_result import ImportResult
from recollect.view.view import View
from recollect.workspace.project_identity import identify_project

SessionId: TypeAlias = Session | SessionInfo | str  # a text is an id, or the beginning of one


class SessionStore:
    """The sessions of one store. Made by `recollect.open`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def create(
        self, *, title: str = "", project: Project | Path | str | None = None, model: str = ""
    ) -> Session:
        """A new session; `model` is the one that tokens are counted for."""
        created = await self.store.create(project=_project(project), title=title)
        return Session(self.store, created.id, View.fold(counter=counter_for(model)))

    async def session(self, id: SessionId = LAST, *, model: str = "") -> Session:  # noqa: A002
        """The session with this id, or whose id begins with this; `last` is the newest one."""
        return await open_session(self.store, await self._find(id), model)

    async def sessions(
        self, *, project: Project | Path | str | None = None, trashed: bool = False
    ) -> tuple[SessionInfo, ...]:
        """Most recently used first; of one project, or of all. `trashed` lists the trash."""
        return await self.store.sessions(project=_project(project), trashed=trashed)

    async def search(
        self,
        words: str,
        *,
        project: Project | Path | str | None = None,
        role: str | None = None,
        tool: str | None = None,
        limit: int = 20,
    ) -> tuple[SearchHit, ...]:
        """Entries of all sessions that have all these words; "quoted words" are adjacent, word* is
        a prefix, -word is excluded."""
        within = _project(project)
        query = SearchQuery(words=words, role=role, tool=tool, limit=limit, project=within)
        return await self.store.search(query)

    async def rename(self, session: SessionId, title: str) -> SessionInfo:
        """Give a session another title."""
        found = await self.store.session(await self._find(session))
        await refuse_trashed(self.store, found)
        return await self.store.rename(found.id, title)

    async def trash(self, session: SessionId) -> SessionInfo:
        """Hide a session; nothing is deleted, and `restore` brings it back."""
        return await self.store.trash(await self._find(session))

    async def restore(self, session: SessionId) -> SessionInfo:
        """Bring a session back from the trash."""
        return await self.store.restore(await self._find(session))

    async def import_file(
        self, path: Path | str, *, project: Project | Path | str | None = None
    ) -> ImportResult:
        """Import another program's session file; importing it again adds only what is new. Without
        a project, the session belongs to the folder that the file names."""

        def find_project(folder: str) -> Project | None:
            return _project(project or folder or None)

        # late: it loads every format
        from recollect.transcripts.session_import import import_file

        return await import_file(self.store, path, project=find_project)

    async def _find(self, session: SessionId) -> str:
        if not isinstance(session, str):
            return session.id
        if session != LAST:
            return (await session_by_id(self.store, session)).id
        found = await latest_session(self.store)
        if found is None:
            raise NotFound("the store has no session yet; `create` makes one")
        return found.id


def _project(given: Project | Path | str | None) -> Project | None:
    return identify_project(Path(given)) if isinstance(given, Path | str) else given


@asynccontextmanager
async def open(path: Path | str | None = None) -> AsyncIterator[SessionStore]:  # noqa: A001
    """Open a store by its path or URL, by default the user's own, and close it at the end of the
    block.

    >>> async with recollect.open("sessions.db") as store:
    ...     session = await store.create(title="limiter")
    """
    async with open_store(path) as store:
        yield SessionStore(store)


# --- stores that runs open for themselves --------------------------------------------------------


async def attach_session(session: Session | None, model: str) -> Session:
    """The session, ready for a run with this model; without one, a new one in the user's store."""
    if session is None:
        store = await kept_store()
        created = await store.create()
        return Session(store, created.id, View.fold(counter=counter_for(model)))
    await reopen_store(session)
    if session.is_stored:
        await refuse_trashed(session.store, await session.info())
    await session.count_for(model)
    return session


async def reopen_store(session: Session) -> None:
    """Open the session's store anew if the event loop that it belonged to has ended."""
    store = session.store
    if not store.closed:
        return
    address = _kept.get(store)
    if address is None and hide_password(users := _users_address()) == store.address:
        address = users
    if address is None:
        raise StoreClosed(store.address)
    session.store = await kept_store(address)
    await session.reload()


def _users_address() -> StoreAddress:
    return default_address(load_settings().store)


async def kept_store(where: Path | str | None = None) -> Store:
    """A store, by default the user's own, opened once for each event loop and closed with it."""
    stores = _stores.setdefault(asyncio.get_running_loop(), {})
    address = _users_address() if where is None else parse_address(where)
    if address not in stores or (stores[address].done() and stores[address].exception()):
        stores[address] = asyncio.ensure_future(_open_for_loop(address))
    return await asyncio.shield(stores[address])


async def _open_for_loop(address: StoreAddress) -> Store:
    """Open a store that a background task closes when the event loop ends and cancels it."""
    opened: asyncio.Future[Store] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        try:
            async with open_store(address) as store:
                _kept[store] = address
                opened.set_result(store)
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001 - whoever waits for the store gets it
            opened.set_exception(error)

    task = asyncio.ensure_future(hold())
    _holders.add(task)
    task.add_done_callback(_holders.discard)
    return await opened


_stores: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[StoreAddress, asyncio.Task[Store]]] = (
    WeakKeyDictionary()
)
_kept: WeakKeyDictionary[Store, StoreAddress] = WeakKeyDictionary()
_holders: set[asyncio.Task[None]] = set()  # an event loop holds its tasks only weakly
