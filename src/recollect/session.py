"""A handle on one session of a store: where it is, and its view at the head.

`append` is durable when it returns, also if its task is cancelled meanwhile. When another writer
appended first, the handle reloads and appends after them, or goes on in a fork; either way it says
so. A scratch session behaves the same and stores nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from recollect.entries import Body, Entry, Message
from recollect.errors import CannotOpen, HeadMoved, UnknownEntry
from recollect.settings import store_path
from recollect.store.contract import Store
from recollect.store.ids import new_id, now
from recollect.store.sqlite import SqliteStore, open_store
from recollect.tokens import counter_for
from recollect.view.curation import CurationPolicy
from recollect.view.view import View
from recollect.view_loader import fold_stored, load_view, save_counts

T = TypeVar("T")
# what to do when another writer appended first: append after them, or go on in a fork
OnConflict: TypeAlias = Literal["reload", "fork", "raise"]
MAX_ATTEMPTS = 20  # to append beside other writers
_log = logging.getLogger("recollect")


async def uncancellable(work: Awaitable[T]) -> T:
    """Finish the work however often this task is cancelled, then raise the cancellation."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:  # noqa: BLE001 - `task.result()` below raises it
            break
    if cancelled is not None and task.exception() is None:
        raise cancelled
    return task.result()


class Session:
    """Made by a store; it follows its own appends, and `reload` follows those of others."""

    def __init__(
        self, store: Store, name: str, view: View, warn: Callable[[str], None] = _log.warning
    ) -> None:
        self.store, self.id, self.warn = store, name, warn
        self._view = view
        self._lock = asyncio.Lock()  # the appends of one handle follow each other

    def __repr__(self) -> str:
        return f"<Session {self.id}, {self._view.n} entries>"

    def view(self) -> View:
        """What the model sees of the session at its head."""
        return self._view

    async def append(
        self, *items: Body | Entry, on_conflict: OnConflict = "reload"
    ) -> tuple[Entry, ...]:
        """Append messages or edits, all or none; they are on disk when this returns."""
        if not items:
            return ()
        return await uncancellable(self._append_locked(items, on_conflict))

    async def _append_locked(
        self, items: tuple[Body | Entry, ...], on_conflict: OnConflict
    ) -> tuple[Entry, ...]:
        async with self._lock:
            for _ in range(MAX_ATTEMPTS):
                try:
                    entries = await self._write(items)
                    break
                except HeadMoved:
                    if on_conflict == "raise":
                        raise
                    await (self._go_on_in_fork() if on_conflict == "fork" else self._follow())
            else:
                entries = await self._write(items)
            self._view = self._view.append(*entries)
            return entries

    async def _write(self, items: tuple[Body | Entry, ...]) -> tuple[Entry, ...]:
        return await self.store.append(self.id, items, parent=self._view.head)

    async def _follow(self) -> None:
        before = self._view.n
        await self.reload()
        self.warn(
            f"session {self.id} was continued elsewhere meanwhile "
            f"({before} entries before, {self._view.n} now); going on after that"
        )

    async def _go_on_in_fork(self) -> None:
        """What belongs to a request must follow it, not the words of another writer."""
        old, self.id = self.id, (await self.store.fork(self.id, at=self._view.head)).id
        self.warn(
            f"session {old} was continued elsewhere meanwhile; "
            f"this goes on in session {self.id}, which shares its beginning"
        )

    async def reload(self) -> None:
        """Read what was appended after this handle's head; after a rewind, the view anew."""
        try:
            new = await self.store.path(self.id, since=self._view.head) if self._view.n else ()
        except UnknownEntry:  # another writer moved the head to a branch without it
            new = ()
        if new and new[0].parent == self._view.head:
            self._view = self._view.append(*new)
        elif (await self.store.session(self.id)).head != self._view.head:
            view = self._view
            self._view = await load_view(
                self.store, self.id, counter=view.log.counter, policy=view.policy
            )

    async def count_for(self, model: str) -> None:
        """Count tokens for this model from now on."""
        counter, view = counter_for(model), self._view
        if counter != view.log.counter:
            self._view = await fold_stored(self.store, view.entries, counter, view.policy)

    async def draft(self, message: Message, draft: str) -> None:
        """Store a reply in progress, under the id of the entry it will become."""
        await self.store.draft(self.id, message, parent=self._view.head, id=draft)

    async def save_counts(self) -> None:
        await save_counts(self.store, self._view)

    def scratch(self) -> Session:
        """A copy of this session whose appends stay in memory: for previews."""
        view = self._view
        copy = View(view.log.first(view.n), view.n, view.policy, view.state)
        return _ScratchSession(self.store, self.id, copy, self.warn)


class _ScratchSession(Session):
    """Stores nothing: entries get ids and times as in the store, and end with the handle."""

    async def _write(self, items: tuple[Body | Entry, ...]) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        parent = self._view.head
        for item in items:
            made = item if isinstance(item, Entry) else Entry(new_id(), None, now(), item)
            entries.append(Entry(made.id, parent, made.time, made.body))
            parent = made.id
        return tuple(entries)

    async def reload(self) -> None:
        pass

    async def draft(self, message: Message, draft: str) -> None:
        pass

    async def save_counts(self) -> None:
        self._view.log.fresh.clear()


async def open_session(
    store: Store,
    name: str,
    model: str = "",
    policy: CurationPolicy | None = None,
    warn: Callable[[str], None] = _log.warning,
) -> Session:
    """A handle on a stored session, with tokens counted for this model."""
    view = await load_view(store, name, counter=counter_for(model), policy=policy)
    return Session(store, name, view, warn)


async def attach_session(session: Session | None, model: str) -> Session:
    """The session, ready for a run with this model; without one, a new one in the user's store.

    A session that began so can be continued in another event loop, where its store is open anew.
    """
    if session is None:
        store = await user_store()
        created = await store.create()
        return Session(store, created.id, View.fold(counter=counter_for(model)))
    if isinstance(session.store, SqliteStore) and session.store.closed:
        if session.store.file != store_path():
            raise CannotOpen(str(session.store.file), "it was closed; open it and the session anew")
        session.store = await user_store()
        await session.reload()
    await session.count_for(model)
    return session


_user_stores: WeakKeyDictionary[
    asyncio.AbstractEventLoop, dict[Path, asyncio.Task[SqliteStore]]
] = WeakKeyDictionary()


async def user_store() -> SqliteStore:
    """The user's own store, opened once for each event loop and closed with it."""
    stores = _user_stores.setdefault(asyncio.get_running_loop(), {})
    path = store_path()
    if path not in stores or (stores[path].done() and stores[path].exception()):
        stores[path] = asyncio.ensure_future(_open_for_loop(path))
    return await asyncio.shield(stores[path])


async def _open_for_loop(path: Path) -> SqliteStore:
    """Open a store that a background task closes when the event loop ends and cancels it."""
    opened: asyncio.Future[SqliteStore] = asyncio.get_running_loop().create_future()

    async def hold() -> None:
        try:
            async with open_store(path) as store:
                opened.set_result(store)
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001 - whoever waits for the store gets it
            opened.set_exception(error)

    task = asyncio.ensure_future(hold())
    _holders.add(task)
    task.add_done_callback(_holders.discard)
    return await opened


_holders: set[asyncio.Task[None]] = set()  # an event loop holds its tasks only weakly
