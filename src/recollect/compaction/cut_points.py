"""Where a history may be cut in two: the older part becomes a snapshot, the newer part stays.

A cut falls between complete exchanges, never between a call and its result. It keeps about the
newest 30 % by size: before a message of the user if one lies near that goal, otherwise before the
nearest reply of the model. Nothing of the newest part goes only because the user said nothing in
it, or because the place nearest to the goal keeps a little more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from recollect.entries import ToolCall, ToolResult
from recollect.view.curation import is_spoken
from recollect.view.view import ViewItem

KEEP_SHARE = 0.3  # of the newest messages, by size
NEAR_SHARES = (0.15, 0.45)  # what a cut may keep to be near that goal


class CutPoint(msgspec.Struct, frozen=True):
    """Items before `at` are replaced, the others stay; `at` may be the number of items."""

    at: int
    kept_tokens: int


def find_cut_points(items: Sequence[ViewItem]) -> tuple[CutPoint, ...]:
    """Every place where the history may be cut, best first: those that keep about the newest 30 %,
    before a message of the user and then before any other, the nearest first; then those that keep
    less and less; then those that keep more and more; then the end, which keeps nothing."""
    if len(items) < 2:
        return ()
    sums = [0, *accumulate(item.tokens for item in items)]
    open_at = open_exchanges(items)
    found = [
        CutPoint(at, sums[-1] - sums[at])
        for at in range(1, len(items))
        if not open_at[at] and _starts_exchange(items[at])
    ]
    goal, end = sums[-1] * KEEP_SHARE, len(items)
    low, high = (sums[-1] * share for share in NEAR_SHARES)
    near = [cut for cut in found if low <= cut.kept_tokens <= high]
    near.sort(key=lambda c: (not is_spoken(items[c.at].message), abs(c.kept_tokens - goal)))
    less = [cut for cut in found if cut.kept_tokens <= goal]  # keep less and less
    more = [cut for cut in reversed(found) if cut.kept_tokens > goal]  # more and more
    closed = items[-1].message.role == "model" and not open_at[end]
    whole = [CutPoint(end, 0)] if closed else []
    return tuple(dict.fromkeys((*near, *less, *more, *whole)))


def newest_exchange(items: Sequence[ViewItem]) -> int:
    """Where the newest exchange begins: what the user said last, or the reply whose calls were run
    last, with everything after it."""
    open_at = open_exchanges(items)
    starts = (at for at in range(len(items) - 1, 0, -1) if _starts_exchange(items[at]))
    return next((at for at in starts if not open_at[at]), 0)


def _starts_exchange(item: ViewItem) -> bool:
    return item.message.role == "model" or is_spoken(item.message)


def open_exchanges(items: Sequence[ViewItem]) -> list[bool]:
    """For each place, whether a call before it has its result after it, or none."""
    waiting: dict[str, int] = {}
    depth = [0] * (len(items) + 2)
    for number, item in enumerate(items):
        for part in item.message.parts:
            if isinstance(part, ToolCall):
                waiting[part.id] = number
            elif isinstance(part, ToolResult) and part.call_id in waiting:
                depth[waiting.pop(part.call_id) + 1] += 1
                depth[number + 1] -= 1
    depth[-2] += len(items) - 1 in waiting.values()  # its result is still to come
    return [total > 0 for total in accumulate(depth)][: len(items) + 1]
