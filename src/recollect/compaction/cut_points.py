"""Where a history may be cut in two: the older part becomes a snapshot, the newer part stays.

A cut is only made before a message from the user, and never between a call and its result. If there
is no such place, everything up to the last complete exchange may be cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from recollect.entries import ToolCall, ToolResult
from recollect.view.curation import is_spoken
from recollect.view.view import ViewItem

KEEP_SHARE = 0.3  # of the newest messages, by size


class CutPoint(msgspec.Struct, frozen=True):
    """Items before `at` are replaced, the others stay; `at` may be the number of items."""

    at: int
    kept_tokens: int


def find_cut_points(items: Sequence[ViewItem]) -> tuple[CutPoint, ...]:
    """Every place where the history may be cut, best first: the one that keeps the newest 30 % or a
    little less, then those that keep even less, then those that keep more."""
    if len(items) < 2:
        return ()
    sums = [0, *accumulate(item.tokens for item in items)]
    goal = sums[-1] * (1 - KEEP_SHARE)
    open_at = _open_exchanges(items)
    spoken = [i for i in range(1, len(items)) if is_spoken(items[i].message) and not open_at[i]]
    after = [i for i in spoken if sums[i] >= goal]
    before = [i for i in reversed(spoken) if sums[i] < goal]
    order = dict.fromkeys(after + before[:1] + _between_exchanges(items, open_at))
    return tuple(CutPoint(at, sums[-1] - sums[at]) for at in order)


def _open_exchanges(items: Sequence[ViewItem]) -> list[bool]:
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


def _between_exchanges(items: Sequence[ViewItem], open_at: list[bool]) -> list[int]:
    """Places between complete exchanges, the last one that keeps something first."""
    replies = [at for at, item in enumerate(items) if item.message.role == "model"]
    within = [at for at in replies if at and not open_at[at]]
    end = len(items)
    whole = [end] if replies[-1:] == [end - 1] and not open_at[end] else []
    return within[-1:] + whole
