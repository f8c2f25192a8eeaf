"""The view: what the model sees of a session, and what was left out.

An immutable value, made by folding entries. `append` costs the same however long the session is,
and appending one by one gives what folding everything at once gives. Nothing in the store can be
changed through a view, and viewing writes nothing.

A view shows, in order: what pins place first, the initial context, the snapshot of the newest
compaction as a user message with the model's acknowledgement, pins from before it, and the messages
since, with placeholders where something was elided. Notes and edits are never shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Compaction, Entry, Message, Text
from recollect.tokens import ESTIMATE, Counter
from recollect.view.curation import CurationPolicy, is_initial
from recollect.view.elision import ActiveElision
from recollect.view.entry_log import ACKNOWLEDGEMENT, NO_COUNTS, EntryLog
from recollect.view.view_state import StateBuilder, ViewState

ItemPlace: TypeAlias = Literal["first", "kept", "snapshot", "tail"]


class ViewItem(msgspec.Struct, frozen=True, gc=False):
    """One message as the view shows it, and the entry it comes from."""

    entry: Entry
    message: Message
    tokens: int
    place: ItemPlace = "tail"
    cuts: tuple[ActiveElision, ...] = ()
    pinned: bool = False

    @property
    def stays(self) -> bool:
        """Whether a compaction keeps it word for word."""
        return self.pinned or is_initial(self.message)


class View:
    """What the model sees of a session. Made by `Session.view` and `View.fold`; never changed."""

    __slots__ = ("_items", "log", "n", "policy", "state")

    def __init__(self, log: EntryLog, n: int, policy: CurationPolicy, state: ViewState) -> None:
        self.log, self.n, self.policy, self.state = log, n, policy, state
        self._items: tuple[ViewItem, ...] | None = None

    @staticmethod
    def fold(
        entries: Iterable[Entry] = (),
        *,
        counter: Counter = ESTIMATE,
        policy: CurationPolicy | None = None,
        known: Mapping[str, tuple[int, ...]] = NO_COUNTS,
    ) -> View:
        """The view of these entries; `known` has token counts of entries counted before."""
        empty = View(EntryLog(counter, known), 0, policy or CurationPolicy(), ViewState())
        return empty.append(*entries)

    def append(self, *entries: Entry) -> View:
        """The view with these entries after the others."""
        log = self.log if len(self.log.entries) == self.n else self.log.first(self.n)
        builder = StateBuilder(log, self.policy, self.state)
        builder.append(entries)
        return View(log, len(log.entries), self.policy, builder.freeze())

    @property
    def tokens(self) -> int:
        """Of everything the view shows."""
        state = self.state
        tail = self.log.tokens_between(state.base, self.n) - state.hidden
        kept = sum(item.tokens for item in self._shown_at(state.kept, "kept"))
        held = state.compactions
        return tail + kept + (sum(self.log.part_tokens(held[-1])) if held else 0)

    @property
    def items(self) -> tuple[ViewItem, ...]:
        """What the model sees, in order: each message with its entry, tokens and elisions."""
        if self._items is None:
            first, state = self._shown_at(self.state.first, "first"), self.state
            kept = self._shown_at((p for p in state.kept if p not in state.first), "kept")
            initial = [item for item in kept if is_initial(item.message)]
            pinned = [item for item in kept if not is_initial(item.message)]
            self._items = (*first, *initial, *self._snapshot(), *pinned, *self._tail())
        return self._items

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages to send, before repair and encoding. Counts no tokens."""
        if self._items is not None or self.state.compactions:
            return tuple([item.message for item in self.items])
        changed, dropped, first = self.state.changed, self.state.dropped, self.state.first
        entries = self.log.entries[: self.n]
        if not changed and not dropped and not first:
            return tuple([entry.body for entry in entries if type(entry.body) is Message])
        found: list[Message] = []
        for position in (*first, *(p for p in range(self.n) if p not in first)):
            entry = entries[position]
            body = entry.body
            if type(body) is Message and position not in dropped:
                shown = changed.get(entry.id)
                if shown is None:
                    found.append(body)
                elif shown.message.parts:
                    found.append(shown.message)
        return tuple(found)

    def messages_after(self, earlier: View) -> list[Message] | None:
        """The messages this view shows after an earlier view's; None if anything else differs too:
        an edit or curation changed something in between, or the views are of different branches."""
        now, then = self.state, earlier.state
        if (
            self.log is not earlier.log
            or self.n < earlier.n
            or now.changed is not then.changed
            or now.dropped is not then.dropped
            or now.first != then.first
            or (now.compactions, now.base, now.kept) != (then.compactions, then.base, then.kept)
        ):
            return None
        new = self.log.entries[earlier.n : self.n]
        return [entry.body for entry in new if type(entry.body) is Message]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Everything that was folded: the full history, with its edits."""
        return tuple(self.log.entries[: self.n])

    @property
    def head(self) -> str | None:
        """The id of the newest entry."""
        return self.log.entries[self.n - 1].id if self.n else None

    @property
    def problems(self) -> tuple[str, ...]:
        """Invalid edits, which have no effect."""
        return self.state.problems

    @property
    def compaction(self) -> Entry | None:
        """The compaction in force."""
        held = self.state.compactions
        return self.log.entries[held[-1]] if held else None

    @property
    def attempt(self) -> Entry | None:
        """The newest compaction of any status."""
        return self.log.entries[self.state.attempt] if self.state.attempt >= 0 else None

    def _shown_at(self, positions: Iterable[int], place: ItemPlace) -> list[ViewItem]:
        return [item for p in positions if (item := self._item(p, place)) is not None]

    def _snapshot(self) -> list[ViewItem]:
        entry = self.compaction
        if entry is None or not isinstance(entry.body, Compaction):
            return []
        snapshot = Message(role="user", parts=(Text(text=entry.body.snapshot),))
        reply = Message(role="model", parts=(Text(text=ACKNOWLEDGEMENT),))
        counts = self.log.part_tokens(self.state.compactions[-1])
        return [
            ViewItem(entry, message, tokens, "snapshot")
            for message, tokens in zip((snapshot, reply), counts, strict=True)
        ]

    def _tail(self) -> list[ViewItem]:
        found: list[ViewItem] = []
        entries, log, pins = self.log.entries, self.log, self.state.pins
        changed = self.state.changed
        elsewhere = self.state.dropped.union(self.state.first)
        log.tokens_between(0, self.n)
        sums = log.sums
        for position in range(self.state.base, self.n):
            entry = entries[position]
            body = entry.body
            if type(body) is not Message or position in elsewhere:
                continue
            key = entry.id
            if key in changed or key in pins:
                item = self._item(position, "tail")
                if item is not None:
                    found.append(item)
            else:
                found.append(ViewItem(entry, body, sums[position + 1] - sums[position]))
        return found

    def _item(self, position: int, place: ItemPlace) -> ViewItem | None:
        entry = self.log.entries[position]
        message = self.log.message(position)
        if message is None or position in self.state.dropped:
            return None
        pinned = self._is_pinned(entry.id)
        shown = self.state.changed.get(entry.id)
        if shown is None:
            return ViewItem(entry, message, self.log.tokens(position), place, (), pinned)
        if not shown.message.parts:
            return None
        return ViewItem(entry, shown.message, shown.tokens, place, shown.cuts, pinned)

    def _is_pinned(self, entry: str) -> bool:
        """Whether a pin holds it; one from before the base only if the compaction names the pin."""
        pin = self.state.pins.get(entry)
        at = self.log.at[pin] if pin is not None else -1
        return pin is not None and (at >= self.state.base or at in self.state.kept)
