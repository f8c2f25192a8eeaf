"""Appending to a session: durable, in order, beside other writers.

`append` is durable when it returns, also if its task is cancelled meanwhile. When another writer
appended first, the handle reloads and appends after them, or goes on in a fork; either way it says
so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Literal, TypeAlias, TypeVar

from recollect.entries import Body, Entry, Message
from recollect.errors import HeadMoved, UnknownEntry
from recollect.store.contract import Store
from recollect.store.output_notes import without_output
from recollect.tokens import counter_for
from recollect.view.view import View
from recollect.view_loader import fold_stored, load_view, save_counts

T = TypeVar("T")
# what to do when another writer appended first: append after them, or go on in a fork
OnConflict: TypeAlias = Literal["reload", "fork", "raise"]
MAX_ATTEMPTS = 100  # to append beside other writers, who may be quicker for a while
log_warning = logging.getLogger("recollect").warning


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


class SessionLog:
    """Made by a store; it follows its own appends, and `reload` follows those of others."""

    def __init__(
        self, store: Store, name: str, view: View, warn: Callable[[str], None] = log_warning
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
            self._view = self._view.append(*without_output(entries))
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
        old, head = self.id, self._view.head
        if head is None:  # nothing is shared: a fork without a place would begin at the new head
            info, project = await self.store.session(old), await self.store.project_of(old)
            made = await self.store.create(project=project, title=info.title, owner=info.owner)
            shared = ""
        else:
            made, shared = await self.store.fork(old, at=head), ", which shares its beginning"
        self.id = made.id
        self.warn(
            f"session {old} was continued elsewhere meanwhile; "
            f"this goes on in session {self.id}{shared}"
        )

    async def reload(self) -> None:
        """Read what was appended after this handle's head; after a rewind, the view anew."""
        view = self._view
        if (await self.store.session(self.id)).head == view.head:
            return
        new: tuple[Entry, ...] = ()
        with suppress(UnknownEntry):  # a rewind left it
            new = await self.store.path(self.id, since=view.head) if view.n else ()
        if new and new[0].parent == view.head:
            self._view = view.append(*without_output(new))
        else:
            counter, policy = view.log.counter, view.policy
            self._view = await load_view(self.store, self.id, counter=counter, policy=policy)

    async def count_for(self, model: str) -> None:
        """Count tokens for this model from now on."""
        counter, view = counter_for(model), self._view
        if counter != view.log.counter:
            self._view = await fold_stored(self.store, view.entries, counter, view.policy)

    async def draft(self, message: Message, draft: str) -> None:
        """Store a reply in progress, under the id of the entry it will become."""
        await self.store.draft(self.id, message, parent=self._view.head, id=draft)

    async def save_counts(self) -> None:
        """Store the token counts of new entries, so that nobody counts them again."""
        await save_counts(self.store, self._view)
