"""Reducing a view until it fits; there is always a view that does.

First the rules leave out what they may, then a compaction follows, and if that is not enough,
everything but the newest message becomes a snapshot, with as much of the initial context and the
pins as there is room for. The compaction's reason names what did not fit, so that the user can be
informed. System messages and the newest message always stay; beyond them 1,000 tokens are enough.
A newest message that is itself too large keeps its ends.
"""

from __future__ import annotations

import msgspec

from recollect.compaction.budget import MAX_SNAPSHOT, MIN_SNAPSHOT, Budget
from recollect.compaction.proposal import (
    Partition,
    Proposal,
    SnapshotInput,
    build_snapshot,
    name_kept,
    propose_compaction,
    replaced_entries,
)
from recollect.entries import Body, Compaction, Elide, Elided, Entry, Message, Restore, Text
from recollect.tokens import Counter
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.entry_log import ACKNOWLEDGEMENT
from recollect.view.placeholders import write_placeholder
from recollect.view.view import View, ViewItem

_MIN_RESULT = 500  # characters of a result that stay


class FittedView(msgspec.Struct, frozen=True):
    """The edits to append, and the view as it will be after them."""

    edits: tuple[Body, ...]
    view: View
    problems: tuple[str, ...] = ()  # of custom rules


def fit_view(
    view: View,
    limit: int,
    now: int,
    rules: ElisionRules | None = None,
    budget: Budget | None = None,
) -> FittedView:
    """The mildest edits after which the view has at most `limit` tokens."""
    if view.tokens <= limit:
        return FittedView((), view)
    rules = rules or ElisionRules()
    budget = budget or Budget.of(target=limit)
    goal = msgspec.structs.replace(budget, target=min(limit, budget.target))
    # a result that is too large by itself is shortened to the room there is
    shortest = max(_MIN_RESULT, limit // 2)
    strict = msgspec.structs.replace(rules, max_characters=min(rules.max_characters, shortest))
    for tried in (rules, strict):
        plan = plan_elisions(view, now, tried, over_budget=True)
        edits: tuple[Body, ...] = plan.edits
        smaller = with_edits(view, edits, now)
        if smaller.tokens <= limit:
            return FittedView(edits, smaller, plan.problems)
        proposal = propose_compaction(
            smaller, goal, trigger="overflow", words=SnapshotInput(root=rules.root)
        )
        if proposal.succeeded:
            break
    else:
        proposal = last_resort(smaller, limit, rules.root)
    compacted = with_edits(view, (*edits, proposal.compaction), now)
    if compacted.tokens < smaller.tokens:
        edits, smaller = (*edits, proposal.compaction), compacted
    hard = _shorten_newest(view, smaller, limit)
    fitted = with_edits(view, (*edits, *hard), now) if hard else smaller
    return FittedView((*edits, *hard), fitted, plan.problems)


def _shorten_newest(before: View, view: View, limit: int) -> tuple[Body, ...]:
    """If the newest message is too large by itself, keep only its ends. If it was shortened before
    and not enough, shorten it again."""
    over, newest = view.tokens - limit, view.items[-1] if view.items else None
    body = newest.entry.body if newest is not None else None
    texts = [p for p in body.parts if isinstance(p, Text)] if isinstance(body, Message) else []
    if over <= 0 or newest is None or not isinstance(body, Message) or not texts:
        return ()
    earlier = tuple(dict.fromkeys(cut.by for cut in newest.cuts))
    if any(before.log.position(edit, before.n) is None for edit in earlier):
        return ()  # it was shortened just now
    longest = max(texts, key=lambda part: len(part.text))
    others = before.log.counter.message(body) - before.log.counter.text(longest.text)
    placeholder = write_placeholder("oversized", "", over, newest.entry.id, "en")
    room = newest.tokens - over - others - before.log.counter.text(placeholder)
    kept = _fitting_length(longest.text, room, before.log.counter)
    ends = Elided(
        entry=newest.entry.id,
        placeholder=placeholder,
        parts=(body.parts.index(longest),),
        head=kept // 2,
        tail=kept - kept // 2,
        tokens=over,
    )
    undone = (Restore(entries=earlier),) if earlier else ()
    return (*undone, Elide(rule="oversized", items=(ends,)))


def _fitting_length(text: str, room: int, counter: Counter) -> int:
    """How many characters of a text's ends have at most `room` tokens."""
    kept = len(text) * max(0, room) // max(1, counter.text(text))
    while kept and counter.text(text[: kept // 2] + text[kept // 2 - kept :]) > room:
        kept = kept * 9 // 10
    return kept


def with_edits(view: View, edits: tuple[Body, ...], now: int) -> View:
    """The view as it would be with these edits."""
    numbered = enumerate(edits, view.n)
    return view.append(*(Entry(f"trial-{n}", view.head, now, body) for n, body in numbered))


def last_resort(view: View, limit: int, root: str = "") -> Proposal:
    """Everything but system messages and the newest message becomes a snapshot."""
    partition = Partition.of(view)
    newest, older = partition.items[-1:], [*partition.fixed, *partition.items[:-1]]
    count = view.log.counter
    system = [item for item in older if item.message.role == "system"]
    spent = sum(item.tokens for item in (*system, *newest)) + count.text(ACKNOWLEDGEMENT) + 50
    wanted = [i for i in older if i not in system and (i.stays or i.place == "kept")]
    kept, lost = _split_by_room(wanted, (limit - spent) // 2)
    spent += sum(item.tokens for item in kept)
    room = max(MIN_SNAPSHOT, min(MAX_SNAPSHOT, limit - spent))
    at = len(partition.items) - len(newest)
    snapshot = build_snapshot(
        view, replaced_entries(view, partition, at), room, SnapshotInput(root=root)
    )
    order = {item.entry.id: view.log.at[item.entry.id] for item in (*system, *kept)}
    names = ", ".join(item.entry.id for item in lost[:20])
    body = Compaction(
        status="COMPRESSED",
        snapshot=snapshot,
        first_kept=newest[0].entry.id if newest else None,
        kept=name_kept(view, sorted(order, key=order.__getitem__)),
        tokens_before=view.tokens,
        tokens_after=spent + count.text(snapshot),
        trigger="overflow",
        reason=f"did not fit and was left out although it should stay: {names}" if lost else "",
    )
    return Proposal(body)


def _split_by_room(items: list[ViewItem], room: int) -> tuple[list[ViewItem], list[ViewItem]]:
    kept, lost = [], []
    for item in items:
        if item.tokens <= room:
            room -= item.tokens
            kept.append(item)
        else:
            lost.append(item)
    return kept, lost
