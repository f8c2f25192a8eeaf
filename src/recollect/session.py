"""A session of a store: append to it, see what a model sees of it, and change that.

Nothing is ever deleted: a pin, an omission, a compaction and their undoing are entries too. The
handle follows its own appends, and `reload` follows those of others. A scratch session behaves the
same and stores nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import reduce
from typing import Any

from recollect.compaction.compaction_range import CompactionRange
from recollect.compaction.proposal import Proposal
from recollect.entries import Body, Compaction, Entry, Message, Usage
from recollect.errors import CannotEdit, HeadMoved
from recollect.explanation import ExplainedRequest, Explanation, explain_request, explain_view
from recollect.models.model_protocol import Model
from recollect.past_requests import compare_recorded, pair_requests
from recollect.profiles import WireName
from recollect.provider_messages import (
    fit_budget,
    new_messages,
    request_body,
    request_messages,
)
from recollect.session_compaction import CompactionResult, propose_for_session
from recollect.session_edits import plan_edits
from recollect.session_log import MAX_ATTEMPTS, SessionLog, log_warning
from recollect.settings import load_settings
from recollect.store.contract import SearchHit, SearchQuery, SessionInfo, Store
from recollect.store.ids import new_id, now
from recollect.store.output_notes import join_output, output_part, read_output_parts
from recollect.tokens import add_usage, counter_for
from recollect.tools.history_lookup import search_session
from recollect.tools.history_text import full_text
from recollect.view.curation import CurationPolicy
from recollect.view.elision_rules import ElisionRules
from recollect.view.omissions import items_replaced
from recollect.view.projections import last_turns
from recollect.view.view import View
from recollect.view_loader import fold_stored, load_view


class Session(SessionLog):
    """A handle on one session; made by a store."""

    @property
    def is_stored(self) -> bool:
        """Whether what is appended outlives this handle."""
        return True

    # --- the model's side --------------------------------------------------------------------

    def messages(
        self,
        format: WireName = "openai",  # noqa: A002 - the name callers expect
        *,
        budget: int | None = None,
        model: str = "",
    ) -> list[Any]:
        """The messages for a provider's SDK, repaired so that it accepts them.

        With a `budget`, in tokens, outdated results are left out, by the rules in the user's
        settings, and the rest is made to fit; nothing is stored. The messages of `openai` begin
        with the system instructions; for `anthropic` and `gemini` `request` has them too.
        """
        return request_messages(self._fitted(budget), format, model)

    def request(
        self,
        format: WireName,  # noqa: A002 - the name callers expect
        *,
        budget: int | None = None,
        model: str = "",
    ) -> dict[str, Any]:
        """The body of a whole request, with the system instructions, as JSON values."""
        return request_body(self._fitted(budget), format, model)

    def _fitted(self, budget: int | None) -> View:
        if budget is None:
            return self._view
        return fit_budget(self._view, budget, ElisionRules.from_settings(load_settings()))

    async def append_openai(self, *items: object) -> tuple[Entry, ...]:
        """Append what OpenAI's SDK, or one like it, returned: a response, a message, or a dict."""
        return await self._append_decoded("openai", items)

    async def append_anthropic(self, *items: object) -> tuple[Entry, ...]:
        """Append what Anthropic's SDK returned: a message, or a dict of one."""
        return await self._append_decoded("anthropic", items)

    async def append_gemini(self, *items: object) -> tuple[Entry, ...]:
        """Append what Google's SDK returned: a response, a `Content`, or a dict of one. Calls that
        the SDK ran by itself are appended before the reply that they led to."""
        return await self._append_decoded("gemini", items)

    async def _append_decoded(self, form: WireName, items: Iterable[object]) -> tuple[Entry, ...]:
        found = new_messages(self._view, form, items)
        if found.repeated:
            self.warn(f"session {self.id} ends with this reply; it was not appended again")
        return await self.append(*found.messages) if found.messages else ()

    async def explain(self) -> Explanation:
        """What the model sees, message by message, and what is left out: by which rule, why, since
        when, why then, and how it comes back; and what the last request cost. Prints as a table."""
        view, compaction, before = self._view, self._view.compaction, None
        if compaction is not None and compaction.parent is not None:
            before = await self._view_at(compaction.parent)
        title, last = (await self.info()).title, await self._explain_last_request()
        return explain_view(view, self.id, title, before, last)

    async def _explain_last_request(self) -> ExplainedRequest | None:
        sent = pair_requests(self._view.entries)[-2:]
        cache = None
        if len(sent) > 1:
            both = (one.request for one in sent)
            cache = await compare_recorded(self.store, self.id, *both)
        return explain_request(sent[-1], cache) if sent else None

    def last_turns(self, turns: int = 5) -> tuple[Message, ...]:
        """The newest turns as the model sees them: each begins with what the user said."""
        return last_turns(self._view, turns)

    # --- edits -------------------------------------------------------------------------------

    async def pin(self, *entries: Entry | str) -> tuple[Entry, ...]:
        """Keep these messages in sight, word for word, whatever is compacted."""
        return await self.edit(pin=entries)

    async def drop(self, *entries: Entry | str) -> tuple[Entry, ...]:
        """Leave these messages out of what the model sees; nothing is deleted."""
        return await self.edit(drop=entries)

    async def restore(self, *entries: Entry | str) -> tuple[Entry, ...]:
        """Undo what left these messages out; also takes the edits: an elision, a pin, a
        compaction."""
        return await self.edit(restore=entries)

    async def edit(
        self,
        *,
        drop: Iterable[Entry | str] = (),
        pin: Iterable[Entry | str] = (),
        restore: Iterable[Entry | str] = (),
    ) -> tuple[Entry, ...]:
        """Several edits at once, all or none; returns the entries that were appended."""
        dropped, pinned, restored = [await self._find(some) for some in (drop, pin, restore)]

        async def plan() -> tuple[Body, ...]:
            return plan_edits(self._view, drop=dropped, pin=pinned, restore=restored)[0]

        return await self._append_planned(plan)

    async def _find(self, entries: Iterable[Entry | str]) -> tuple[Entry, ...]:
        """The entries with these ids, or beginnings of ids; afterwards the view has them all."""
        found: dict[str, Entry] = {}
        for one in entries:
            entry = one if isinstance(one, Entry) else await self.entry(one)
            found[entry.id] = entry
        if any(self._view.log.position(key, self._view.n) is None for key in found):
            view = self._view  # it holds only what it shows: an edit may name what is hidden
            path = await self.store.path(self.id, at=view.head) if view.head is not None else ()
            self._view = await fold_stored(self.store, path, view.log.counter, view.policy)
        return tuple(found.values())

    async def _append_planned(
        self, plan: Callable[[], Awaitable[tuple[Body, ...]]]
    ) -> tuple[Entry, ...]:
        """Append what is planned for the view; if another writer was first, plan again."""
        for _ in range(MAX_ATTEMPTS):
            with suppress(HeadMoved):
                return await self.append(*await plan(), on_conflict="raise")
            await self._follow()
        return await self.append(*await plan(), on_conflict="raise")

    async def compact(
        self,
        *,
        preview: bool = False,
        budget: int | None = None,
        instructions: str = "",
        model: str | Model | None = None,
        until: Entry | str | None = None,
    ) -> CompactionResult:
        """Replace the older messages with a snapshot; `preview` shows the result and stores
        nothing.

        The snapshot is built from the log; `model`, if given, writes part of it. `budget` is what
        may remain, in tokens, by default four fifths of the model's threshold. `instructions` say
        what the snapshot must keep. With `until` only what comes before that entry is replaced: it
        and everything after it stay. `undo_compaction` brings everything back.
        """
        part = None if until is None else CompactionRange(until=await self._id_of(until))
        proposals: list[Proposal] = []

        async def plan() -> tuple[Body, ...]:
            proposed = await propose_for_session(self._view, budget, instructions, model, part)
            proposals.append(proposed)
            unchanged = preview or proposed.compaction.status == "NOOP"
            return () if unchanged else (proposed.compaction,)

        entry = next(iter(await self._append_planned(plan)), None)
        return CompactionResult(proposals[-1].compaction, proposals[-1].report, entry)

    async def undo_compaction(self) -> tuple[Entry, ...]:
        """Undo the compaction in force."""
        compaction = self._view.compaction
        if compaction is None:
            raise CannotEdit("undo a compaction of", self.id, "none is in force")
        return await self.restore(compaction)

    # --- the history -------------------------------------------------------------------------

    async def info(self) -> SessionInfo:
        """Title, project, times and size of the session."""
        return await self.store.session(self.id)

    async def entry(self, prefix: str) -> Entry:
        """The entry of this session whose id begins with this."""
        position = self._view.log.position(prefix, self._view.n)
        held = self._view.log.entries[position] if position is not None else None
        if held is not None and output_part(held.body) is None:  # a view has no text of outputs
            return held
        return (await self.store.entry(prefix, session=self.id))[1]

    async def recall(self, entry: Entry | str) -> str:
        """The full text of an entry, whatever the model sees of it; of a compaction, the text of
        everything that its snapshot replaced; of a command's output, all parts of it."""
        found = entry if isinstance(entry, Entry) else await self.entry(entry)
        if output_part(found.body) is not None:
            return join_output(await read_output_parts(self.store, self.id, found))
        if not isinstance(found.body, Compaction) or found.parent is None:
            return full_text(found.body)
        before = await self._view_at(found.parent)
        after = before.append(found)
        gone = items_replaced(before, after)
        return "\n\n".join(f"{i.message.role}: {full_text(i.message)}" for i in gone)

    async def search(self, words: str, *, limit: int = 20) -> tuple[SearchHit, ...]:
        """Entries of this session, and of those it was forked from, that have all these words."""
        query = SearchQuery(words=words, limit=limit)
        hits, _ = await search_session(self.store, await self.info(), query)
        return hits[:limit]

    async def usage(self) -> Usage:
        """Tokens of every reply appended to this session, on all of its branches."""
        bodies = (entry.body for entry in await self.store.tree(self.id))
        replies = (body.usage for body in bodies if isinstance(body, Message))
        return reduce(add_usage, replies, Usage())

    async def fork(self, at: Entry | str | None = None, *, title: str = "") -> Session:
        """A new session that shares this one's beginning, up to its head or to an entry."""
        place = self._view.head if at is None else await self._id_of(at)
        forked = await self.store.fork(self.id, at=place, title=title)
        view = await self._view_at(place) if place is not None else self._view
        return Session(self.store, forked.id, view, self.warn)

    async def rewind(self, to: Entry | str | None) -> None:
        """Go on after this entry, or from the start; nothing is deleted."""
        place = None if to is None else await self._id_of(to)
        await self.store.rewind(self.id, place, head=self._view.head)
        await self.reload()

    async def continue_at(self, entry: str) -> None:
        """Go on after this entry; in a fork, if the session's head is another one."""
        if self._view.head != entry:
            view = await self._view_at(entry)
            self.id, self._view = (await self.store.fork(self.id, at=entry)).id, view

    async def _id_of(self, entry: Entry | str) -> str:
        return entry.id if isinstance(entry, Entry) else (await self.entry(entry)).id

    async def _view_at(self, entry: str) -> View:
        counter, policy = self._view.log.counter, self._view.policy
        return await load_view(self.store, self.id, at=entry, counter=counter, policy=policy)

    def scratch(self) -> Session:
        """A copy of this session whose appends stay in memory: for previews."""
        view = self._view
        copy = View(view.log.first(view.n), view.n, view.policy, view.state)
        return _ScratchSession(self.store, self.id, copy, self.warn)


_STORES_NOTHING = "this handle is a scratch session, which stores nothing"


class _ScratchSession(Session):
    """Stores nothing: entries get ids and times as in the store, and end with the handle."""

    @property
    def is_stored(self) -> bool:
        return False

    async def _write(self, items: tuple[Body | Entry, ...]) -> tuple[Entry, ...]:
        entries: list[Entry] = []
        parent = self._view.head
        for item in items:
            made = item if isinstance(item, Entry) else Entry(new_id(), None, now(), item)
            entries.append(Entry(made.id, parent, made.time, made.body))
            parent = made.id
        return tuple(entries)

    async def _view_at(self, entry: str) -> View:
        view = self._view
        position = view.log.position(entry, view.n)
        if position is None:
            return await super()._view_at(entry)
        past = view.entries[: position + 1]
        return View.fold(past, counter=view.log.counter, policy=view.policy)

    async def fork(self, at: object = None, *, title: str = "") -> Session:
        del at, title
        raise CannotEdit("fork", self.id, f"{_STORES_NOTHING}; fork the one it was made of")

    async def rewind(self, to: object) -> None:
        del to
        raise CannotEdit("rewind", self.id, f"{_STORES_NOTHING}; rewind the one it was made of")

    async def continue_at(self, entry: str) -> None:
        self._view = await self._view_at(entry)

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
    warn: Callable[[str], None] = log_warning,
) -> Session:
    """A handle on a stored session, with tokens counted for this model."""
    view = await load_view(store, name, counter=counter_for(model), policy=policy)
    return Session(store, name, view, warn)
