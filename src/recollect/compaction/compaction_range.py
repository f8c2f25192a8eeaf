"""The part of a session that a user wants compacted: from one entry to before another.

Everything outside of it stays word for word: what comes before it as what the compaction keeps,
which the model sees after the snapshot, and what comes after it where it is. A limit that falls
between a call and its result moves so that less is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.compaction.cut_points import open_exchanges
from recollect.errors import CannotEdit
from recollect.view.view import View, ViewItem


class CompactionRange(msgspec.Struct, frozen=True):
    """Ids of entries; None: no limit on that side."""

    since: str | None = None  # the first that is replaced
    until: str | None = None  # the first that stays


def locate_range(view: View, items: Sequence[ViewItem], part: CompactionRange) -> tuple[int, int]:
    """Where the replaced items begin, and the first item after them that stays."""
    start = 0 if part.since is None else _item_from(view, items, part.since)
    end = len(items) if part.until is None else _item_from(view, items, part.until)
    open_at = open_exchanges(items)
    while end > 0 and open_at[end]:
        end -= 1
    while start < end and open_at[start]:
        start += 1
    return start, max(start, end)


def _item_from(view: View, items: Sequence[ViewItem], entry: str) -> int:
    """The first item that is this entry or comes after it."""
    position = view.log.position(entry, view.n)
    if position is None or position < view.state.base:
        why = "a snapshot replaces it already, or it is on another branch; name a later entry"
        raise CannotEdit("compact at", entry, why)
    places = (view.log.at[item.entry.id] for item in items)
    return next((n for n, place in enumerate(places) if place >= position), len(items))
