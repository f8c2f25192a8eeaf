"""Reducing a view until it fits; there is always a view that does.

In this order: the rules leave out what they may, a newest exchange that takes most of the window
is shortened, a compaction follows. If that is not enough, everything but the initial context and
the newest exchange becomes a snapshot, with as many pins as there is room for; the compaction's
reason names those that did not fit, so that the user can be informed. Instructions, environment and
memory are in every view: where even they are too large, they lose their middle.
"""

from __future__ import annotations

import msgspec

from recollect.compaction.budget import MAX_SNAPSHOT, MIN_SNAPSHOT, Budget
from recollect.compaction.cut_points import newest_exchange
from recollect.compaction.message_shortening import Shortening, plan_cuts, shorten
from recollect.compaction.proposal import (
    Partition,
    SnapshotInput,
    build_snapshot,
    name_kept,
    propose_compaction,
    replaced_entries,
)
from recollect.entries import Body, Compaction, Entry
from recollect.view.curation import is_initial
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.entry_log import ACKNOWLEDGEMENT
from recollect.view.view import View, ViewItem
from recollect.view.view_state import with_partners

_MIN_RESULT = 500  # characters of a result that stay
_SLACK = 50  # tokens: texts that are joined may count a little more than apart
_MAX_ROUNDS = 4  # to come below the limit where texts count more than planned


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
        huge = shorten_newest(smaller, limit, budget, rules)
        edits, smaller = (*edits, *huge), with_edits(smaller, huge, now)
        if smaller.tokens <= limit:
            return FittedView(edits, smaller, plan.problems)
        words = SnapshotInput(root=rules.root)
        proposal = propose_compaction(smaller, goal, trigger="overflow", words=words)
        if proposal.succeeded:
            edits = (*edits, proposal.compaction)
            return FittedView(edits, with_edits(view, edits, now), plan.problems)
    edits = (*edits, *last_resort(smaller, limit, now, rules))
    return FittedView(edits, with_edits(view, edits, now), plan.problems)


def shorten_newest(view: View, limit: int, budget: Budget, rules: ElisionRules) -> tuple[Body, ...]:
    """If the view is over its limit and the newest exchange is most of that, the edits that shorten
    it to the room beside the rest, at least to half of what a compaction has to reach. So one
    message that is too large costs neither the history nor the initial context."""
    if view.tokens <= limit:
        return ()
    items = Partition.of(view).items
    newest = [item for item in items[newest_exchange(items) :] if not is_initial(item.message)]
    size = sum(item.tokens for item in newest)
    if size <= limit // 2:
        return ()
    rest = view.tokens - size + _SLACK
    goal = min(limit, budget.target)  # not the threshold, or the next message compacts it
    room = max(goal // 2, goal - rest)
    made = shorten(view, plan_cuts(view, newest, room, rules.language))
    return (*made.edits, *made.pins)


def with_edits(view: View, edits: tuple[Body, ...], now: int) -> View:
    """The view as it would be with these edits."""
    numbered = enumerate(edits, view.n)
    return view.append(*(Entry(f"trial-{n}", view.head, now, body) for n, body in numbered))


def last_resort(
    view: View, limit: int, now: int, rules: ElisionRules | None = None
) -> tuple[Body, ...]:
    """The edits after which the view is the initial context, a snapshot and the newest exchange, or
    only its newest message where the whole exchange cannot be made to fit."""
    rules, items = rules or ElisionRules(), Partition.of(view).items
    edits: tuple[Body, ...] = ()
    for start in dict.fromkeys((newest_exchange(items), max(0, len(items) - 1))):
        room = limit
        for _ in range(_MAX_ROUNDS):
            edits = _reduce_to(view, start, room, now, rules)
            over = with_edits(view, edits, now).tokens - limit
            if over <= 0:
                return edits
            room -= over
    return edits


def _reduce_to(
    view: View, start: int, limit: int, now: int, rules: ElisionRules
) -> tuple[Body, ...]:
    """Shorten what stays, then replace everything else by a snapshot, if there is anything else."""
    partition = Partition.of(view)
    older = [*partition.fixed, *partition.items[:start]]
    replaces = view.compaction is not None or any(not is_initial(i.message) for i in older)
    reserve = MIN_SNAPSHOT + view.log.counter.text(ACKNOWLEDGEMENT) + _SLACK if replaces else 0
    made = _shorten_all(view, start, limit - reserve, rules)
    if not replaces:
        return (*made.edits, *made.pins)
    smaller = with_edits(view, made.edits, now)
    # what lost its pin may have moved to where it was appended
    newest = {item.entry.id for item in partition.items[start:]}
    moved = (n for n, i in enumerate(Partition.of(smaller).items) if i.entry.id in newest)
    compaction = _snapshot_before(smaller, next(moved, start), limit, rules.root)
    return (*made.edits, compaction, *made.pins)


def _shorten_all(view: View, start: int, room: int, rules: ElisionRules) -> Shortening:
    """Make the initial context and the newest exchange fit: the exchange loses its middle first,
    down to a quarter of the room, and then the initial context."""
    partition = Partition.of(view)
    newest, older = partition.items[start:], (*partition.fixed, *partition.items[:start])
    initial = [item for item in older if is_initial(item.message)]
    size, first = (sum(item.tokens for item in items) for items in (newest, initial))
    for_first = max(0, room - min(size, room // 4))
    cuts = plan_cuts(view, initial, for_first, rules.language) if first > for_first else ()
    rest = room - min(first, for_first)
    if size > rest:
        cuts = (*cuts, *plan_cuts(view, newest, rest, rules.language))
    return shorten(view, cuts)


def _snapshot_before(view: View, start: int, limit: int, root: str) -> Compaction:
    """The compaction that replaces everything before the item `start` of the tail but the initial
    context and the pins that fit."""
    partition, count = Partition.of(view), view.log.counter
    newest, older = partition.items[start:], [*partition.fixed, *partition.items[:start]]
    initial = [item for item in older if is_initial(item.message)]
    spent = sum(item.tokens for item in (*initial, *newest))
    spent += count.text(ACKNOWLEDGEMENT) + _SLACK
    kept, lost = _split_pins(view, older, (limit - spent - MIN_SNAPSHOT) // 2)
    spent += sum(item.tokens for item in kept)
    room = max(MIN_SNAPSHOT, min(MAX_SNAPSHOT, limit - spent))
    gone = replaced_entries(view, partition, start)
    snapshot = build_snapshot(view, gone, room, SnapshotInput(root=root))
    order = {item.entry.id: view.log.at[item.entry.id] for item in (*initial, *kept)}
    names = ", ".join(item.entry.id for item in lost[:20])
    return Compaction(
        status="COMPRESSED",
        snapshot=snapshot,
        first_kept=newest[0].entry.id if newest else None,
        kept=name_kept(view, sorted(order, key=order.__getitem__)),
        tokens_before=view.tokens,
        tokens_after=spent - _SLACK + count.text(snapshot),
        trigger="overflow",
        reason=f"did not fit and was left out although it should stay: {names}" if lost else "",
    )


def _split_pins(
    view: View, older: list[ViewItem], room: int
) -> tuple[list[ViewItem], list[ViewItem]]:
    """The pinned messages that fit, each with the calls and results it belongs to; and the rest."""
    by_place = {view.log.at[i.entry.id]: i for i in older if not is_initial(i.message)}
    kept: dict[int, ViewItem] = {}
    lost: list[ViewItem] = []
    for place, item in by_place.items():
        if not item.pinned or place in kept:
            continue
        group = {p: by_place[p] for p in with_partners(view.log, {place}) if p in by_place}
        size = sum(one.tokens for at, one in group.items() if at not in kept)
        if size <= room:
            room -= size
            kept |= group
        else:
            lost.append(item)
    return list(kept.values()), lost
