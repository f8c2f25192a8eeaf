"""What a view shows and what it leaves out, in numbers that add up.

`count_by_category` assigns every token of a view to a category. `find_omissions` lists everything
that is not shown: by which rule, how many tokens it would add, since when, and the handle that
brings it back. Without a compaction, the tokens shown and the tokens omitted add up to the whole
log. `compare_views` lists the differences of two views; its tokens are the difference of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec

from recollect.entries import (
    Compaction,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from recollect.tokens import Counter
from recollect.view.curation import is_initial
from recollect.view.edit_reasons import explain_compaction, reason_of
from recollect.view.elision import apply_elisions
from recollect.view.initial_messages import memory_in
from recollect.view.view import View, ViewItem

TokenCategory: TypeAlias = Literal[
    "instructions",
    "environment",
    "memory",
    "messages",
    "calls",
    "results",
    "thoughts",
    "snapshot",
]
CATEGORIES: tuple[TokenCategory, ...] = get_args(TokenCategory)
_OF_PARTS: dict[type, TokenCategory] = {
    ToolCall: "calls",
    ToolResult: "results",
    Thought: "thoughts",
}
COMPACTION, INVALID, UNDONE, ELSEWHERE = "compaction", "invalid", "undone", "elsewhere"


def count_by_category(view: View) -> dict[TokenCategory, int]:
    """Tokens of each category; together they are `view.tokens`."""
    sums = dict.fromkeys(CATEGORIES, 0)
    for item in view.items:
        for category, tokens in _item_shares(view, item):
            sums[category] += tokens
    return sums


def _item_shares(view: View, item: ViewItem) -> Iterable[tuple[TokenCategory, int]]:
    if item.place == "snapshot":
        return [("snapshot", item.tokens)]
    if is_initial(item.message):
        return share_initial(item, view.log.counter)
    parts = item.message.parts
    kinds = {_part_category(part) for part in parts}
    if len(kinds) == 1:  # counted already, however large it is
        return [(kinds.pop(), item.tokens)]
    stored = item.entry.body.parts if isinstance(item.entry.body, Message) else ()
    counts = view.log.part_tokens(view.log.at[item.entry.id])
    known = dict(zip(map(id, stored), counts, strict=False))
    count = view.log.counter.part  # for parts that are shown differently from how they were stored
    return [(_part_category(p), known[id(p)] if id(p) in known else count(p)) for p in parts]


def share_initial(item: ViewItem, counter: Counter) -> Iterable[tuple[TokenCategory, int]]:
    """The tokens of a message that begins a session; the environment block has memory in it."""
    message = item.message
    if message.role == "system":
        return [("instructions", item.tokens)]
    if message.context == "memory":
        return [("memory", item.tokens)]
    texts = (memory_in(part.text) for part in message.parts if isinstance(part, Text))
    memory = min(item.tokens, sum(map(counter.text, texts)))
    return [("environment", item.tokens - memory), ("memory", memory)]


def _part_category(part: Part) -> TokenCategory:
    return _OF_PARTS.get(type(part), "messages")


class Omission(msgspec.Struct, frozen=True):
    rule: str  # the elision's; or `compaction`; or `invalid` for a reply no provider accepts
    entry: str  # the message; of a compaction, its own entry
    tokens: int  # that restoring it would add
    since: int
    parts: tuple[int, ...] = ()  # positions in the message; empty means all of it
    by: str = ""  # the edit that made it
    handle: str = ""  # what to restore; empty when nothing brings it back
    why_now: str = ""  # why at that request; empty if the edit does not say


def find_omissions(view: View) -> tuple[Omission, ...]:
    """In the order of the log, the compaction in force first."""
    state = view.state
    hidden = {view.log.at[entry] for entry, shown in state.changed.items() if shown.cuts}
    hidden |= state.dropped
    in_sight = sorted(p for p in hidden if p >= state.base or p in state.kept)
    found = [omission for at in in_sight for omission in _message_omissions(view, at)]
    held = view.compaction
    if held is not None and isinstance(held.body, Compaction):
        saved = max(0, held.body.tokens_before - held.body.tokens_after)
        why = explain_compaction(view.log, held)
        found.insert(0, Omission(COMPACTION, held.id, saved, held.time, (), held.id, held.id, why))
    return tuple(found)


def _message_omissions(view: View, position: int) -> Iterator[Omission]:
    entry, message = view.log.entries[position], view.log.message(position)
    shown = view.state.changed.get(entry.id)
    cuts = shown.cuts if shown is not None else ()
    tokens = view.log.tokens(position)
    if shown is not None and message is not None:
        for number, cut in enumerate(cuts, 1):
            left = shown.tokens
            if number < len(cuts):
                left = view.log.counter.message(apply_elisions(message, cuts[:number]))
            saved, tokens = tokens - left, left
            where, why = (cut.what.parts, cut.by), _elision_reason(view, cut.by)
            yield Omission(cut.rule, entry.id, saved, cut.since, *where, entry.id, why)
    if position in view.state.dropped:
        yield Omission(INVALID, entry.id, tokens, entry.time)


def _elision_reason(view: View, edit: str) -> str:
    return reason_of(view.log, view.log.entries[view.log.at[edit]])


class OmissionTotal(NamedTuple):
    things: int
    tokens: int


def total_by_rule(found: Iterable[Omission]) -> dict[str, OmissionTotal]:
    sums: dict[str, OmissionTotal] = {}
    for one in found:
        things, tokens = sums.get(one.rule, OmissionTotal(0, 0))
        sums[one.rule] = OmissionTotal(things + 1, tokens + one.tokens)
    return sums


def items_replaced(before: View, now: View) -> tuple[ViewItem, ...]:
    """What a compaction replaced: shown in the view before it and not in the one after."""
    shown = {item.entry.id for item in now.items}
    return tuple(item for item in before.items if item.entry.id not in shown)


class RemovedItem(NamedTuple):
    item: ViewItem
    why: str  # a rule, `compaction`, `invalid`, `undone`, or `elsewhere`: not on this path


class ChangedItem(NamedTuple):
    before: ViewItem
    after: ViewItem

    @property
    def tokens(self) -> int:
        return self.after.tokens - self.before.tokens


class ViewDifference(msgspec.Struct, frozen=True):
    appeared: tuple[ViewItem, ...] = ()
    gone: tuple[RemovedItem, ...] = ()
    changed: tuple[ChangedItem, ...] = ()

    @property
    def tokens(self) -> int:
        come = sum(item.tokens for item in self.appeared)
        gone = sum(one.item.tokens for one in self.gone)
        return come - gone + sum(change.tokens for change in self.changed)


def compare_views(old: View, new: View) -> ViewDifference:
    before = {item_key(item): item for item in old.items}
    after = {item_key(item): item for item in new.items}
    both = [ChangedItem(item, after[key]) for key, item in before.items() if key in after]
    return ViewDifference(
        tuple(item for key, item in after.items() if key not in before),
        tuple(
            RemovedItem(i, explain_removal(new, i)) for key, i in before.items() if key not in after
        ),
        tuple(c for c in both if c.tokens or c.before.message != c.after.message),
    )


def item_key(item: ViewItem) -> tuple[str, str]:
    """The role tells apart the two messages of a snapshot, which share one entry."""
    return item.entry.id, item.message.role if item.place == "snapshot" else ""


def explain_removal(view: View, item: ViewItem) -> str:
    """Why a view does not show an item that another one showed."""
    position = view.log.position(item.entry.id, view.n)
    if position is None or position < view.state.base:
        return COMPACTION if view.compaction is not None else ELSEWHERE
    if item.place == "snapshot":
        return COMPACTION if view.compaction is not None else UNDONE
    if position in view.state.dropped:
        return INVALID
    shown = view.state.changed.get(item.entry.id)
    return shown.cuts[-1].rule if shown is not None and shown.cuts else ELSEWHERE
