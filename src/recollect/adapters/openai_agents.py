"""recollect as the `Session` of openai-agents: `Runner.run(…, session=RecollectSession("name"))`.

Every item is on disk when `add_items` returns, and comes back equal to what was given, unless
recollect left something out of the session: then the items show what the view shows. A call whose
output is missing, because the program died, is answered in what is returned, never in the log.
`pop_item` and `clear_session` move the head; nothing is deleted. Several objects and processes may
write to one session, and no item is lost. The package itself is not imported.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from recollect.adapters.response_items import read_items, to_messages, tool_names, without_last_item
from recollect.adapters.view_items import pair_calls, show_items
from recollect.compaction.view_reduction import fit_view, with_edits
from recollect.entries import Entry, Message
from recollect.errors import AlreadyExists, BadInput, HeadMoved, UnknownSession
from recollect.session import Session, open_session
from recollect.session_log import MAX_ATTEMPTS, uncancellable
from recollect.session_store import kept_store
from recollect.store.contract import Project, Store
from recollect.store.ids import derived_id, now
from recollect.transcripts.json_values import Json
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View

T = TypeVar("T")


class RecollectSession:
    """A session of openai-agents, by any name you like: the same name is the same session.

    Without a `store` it is in the user's own; `recollect sessions --all` lists it by its name.

    Args:
        budget: at most so many tokens are returned, counted for `model`
        rules: which old tool outputs are left out of what is returned
        full: return every item ever added, also those that recollect left out since
        session_settings: `SessionSettings` of openai-agents
    """

    def __init__(
        self,
        session_id: str,
        *,
        store: Store | None = None,
        project: Project | None = None,
        model: str = "",
        budget: int | None = None,
        rules: ElisionRules | None = None,
        full: bool = False,
        session_settings: Any = None,
    ) -> None:
        if not session_id:
            raise BadInput("the session id is empty; give each conversation a name of its own")
        self.session_id, self.session_settings = session_id, session_settings
        self._store, self._project, self._model = store, project, model
        self._budget, self._rules, self._full = budget, rules, full
        self._session: Session | None = None

    def __repr__(self) -> str:
        return f"<RecollectSession {self.session_id!r}>"

    async def open(self) -> Session:
        """The handle of this session in recollect, which is made if need be."""
        store = self._store or await kept_store()  # of this event loop
        if self._session is None or self._session.store is not store:
            id_ = derived_id("openai-agents", self.session_id)
            try:
                await store.session(id_)
            except UnknownSession:
                with contextlib.suppress(AlreadyExists):  # another writer was first
                    await store.create(id=id_, title=self.session_id, project=self._project)
            self._session = await open_session(store, id_, self._model)
        else:
            await self._session.reload()
        return self._session

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The items, oldest first; with a limit, the newest of them exactly as they were added,
        because openai-agents looks for its own items so, and pairs calls with outputs itself."""
        session = await self.open()
        if self._full:
            path = await session.store.path(session.id)
            items = [span.item for _, message in _messages(path) for span in read_items(message)]
        else:
            items = show_items(self._fit(session.view()))
        if limit is None:
            limit = _limit_of(self.session_settings)
        if limit is None or limit < 0:
            return items if self._full else pair_calls(items)
        return items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[Any]) -> None:
        """Append the items, all or none."""
        if not items:
            return
        session = await self.open()
        await session.append(*to_messages(items, tool_names(items, session.view().entries)))

    async def pop_item(self) -> Any | None:
        """Take the newest item back: the head moves to before it."""
        return await uncancellable(self._retry(self._pop))

    async def clear_session(self) -> None:
        """Go back to the start."""
        session = await self.open()
        await session.store.rewind(session.id, None)

    async def _pop(self, session: Session) -> Json | None:
        store, head = session.store, session.view().head
        newest = await _newest_message(store, session.id, head)
        if newest is None:
            return None
        entry, message = newest
        shorter, to = without_last_item(message), entry.parent
        if shorter is not None:
            (left,) = await store.branch(session.id, [shorter], at=to)
            to = left.id
        await store.rewind(session.id, to, head=head)
        return read_items(message)[-1].item

    async def _retry(self, change: Callable[[Session], Awaitable[T]]) -> T:
        """Make the change at the head, wherever other writers moved it."""
        for _ in range(MAX_ATTEMPTS):
            with contextlib.suppress(HeadMoved):
                return await change(await self.open())
        return await change(await self.open())

    def _fit(self, view: View) -> View:
        """The view by this session's rules and budget; none of these edits is stored."""
        time = now()
        if self._rules is not None:
            view = with_edits(view, plan_elisions(view, time, self._rules).edits, time)
        if self._budget is not None:
            view = fit_view(view, self._budget, time, self._rules).view
        return view


def _messages(entries: tuple[Entry, ...]) -> list[tuple[Entry, Message]]:
    return [(entry, entry.body) for entry in entries if isinstance(entry.body, Message)]


async def _newest_message(
    store: Store, session: str, head: str | None
) -> tuple[Entry, Message] | None:
    """The newest message that holds items."""
    window = 8
    while head is not None:
        path = await store.path(session, at=head, last=window)
        found = (pair for pair in reversed(_messages(path)) if read_items(pair[1]))
        newest = next(found, None)
        if newest is not None or len(path) < window:
            return newest
        window *= 4
    return None


def _limit_of(settings: Any) -> int | None:
    found = (
        settings.get("limit") if isinstance(settings, dict) else getattr(settings, "limit", None)
    )
    return found if isinstance(found, int) else None
