"""A view that fits, always: a dead end is impossible.

First the rules leave out what they may, then a compaction, and if that is not enough either, all
but the newest message becomes a snapshot, with as much of the initial context and the pins as there
is room for. What had to go is in the compaction's reason, so a person can be told. System messages
and the newest message always stay; beyond them 1,000 tokens are enough.
"""

from __future__ import annotations

import msgspec

from recollect.compaction.proposing import (
    MAX_SNAPSHOT,
    MIN_SNAPSHOT,
    Budget,
    Pieces,
    Proposal,
    Words,
    covered,
    propose,
    snapshot_of,
)
from recollect.entries import Body, Compaction, Entry
from recollect.view.log import ACKNOWLEDGEMENT
from recollect.view.rules import Rules, plan
from recollect.view.view import Item, View


class Fitted(msgspec.Struct, frozen=True):
    """The edits to append, and the view as it will be after them."""

    edits: tuple[Body, ...]
    view: View


def fit(
    view: View, limit: int, now: int, rules: Rules | None = None, budget: Budget | None = None
) -> Fitted:
    """The mildest edits after which the view has at most `limit` tokens."""
    if view.tokens <= limit:
        return Fitted((), view)
    edits: tuple[Body, ...] = plan(view, now, rules, over_budget=True).edits
    smaller = tried(view, edits, now)
    if smaller.tokens <= limit:
        return Fitted(edits, smaller)
    budget = budget or Budget.of(target=limit)
    goal = msgspec.structs.replace(budget, target=min(limit, budget.target))
    root = rules.root if rules is not None else ""
    proposal = propose(smaller, goal, trigger="overflow", words=Words(root=root))
    if not proposal.works:
        proposal = last_resort(smaller, limit, root)
    edits = (*edits, proposal.compaction)
    return Fitted(edits, tried(view, edits, now))


def tried(view: View, edits: tuple[Body, ...], now: int) -> View:
    """The view as it would be with these edits."""
    ids = (f"trial-{view.n + number}" for number in range(len(edits)))
    return view.append(
        *(Entry(key, view.head, now, body) for key, body in zip(ids, edits, strict=True))
    )


def last_resort(view: View, limit: int, root: str = "") -> Proposal:
    """Everything but system messages and the newest message becomes a snapshot."""
    pieces = Pieces.of(view)
    newest, older = pieces.items[-1:], [*pieces.fixed, *pieces.items[:-1]]
    count = view.log.counter
    system = [item for item in older if item.message.role == "system"]
    spent = sum(item.tokens for item in (*system, *newest)) + count.text(ACKNOWLEDGEMENT) + 50
    wanted = [i for i in older if i not in system and i.stays]
    kept, lost = _what_fits(wanted, (limit - spent) // 2)
    spent += sum(item.tokens for item in kept)
    room = max(MIN_SNAPSHOT, min(MAX_SNAPSHOT, limit - spent))
    at = len(pieces.items) - len(newest)
    snapshot = snapshot_of(view, covered(view, pieces, at), room, Words(root=root))
    order = {item.entry.id: view.log.at[item.entry.id] for item in (*system, *kept)}
    names = ", ".join(item.entry.id for item in lost[:20])
    body = Compaction(
        status="COMPRESSED",
        snapshot=snapshot,
        first_kept=newest[0].entry.id if newest else None,
        kept=tuple(sorted(order, key=order.__getitem__)),
        tokens_before=view.tokens,
        tokens_after=spent + count.text(snapshot),
        trigger="overflow",
        reason=f"did not fit and was left out although it should stay: {names}" if lost else "",
    )
    return Proposal(body)


def _what_fits(items: list[Item], room: int) -> tuple[list[Item], list[Item]]:
    kept, lost = [], []
    for item in items:
        if item.tokens <= room:
            room -= item.tokens
            kept.append(item)
        else:
            lost.append(item)
    return kept, lost
