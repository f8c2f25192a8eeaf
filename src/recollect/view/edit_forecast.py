"""What an edit of the context would do: tokens it saves or adds, and what it costs in cache.

The prompt cache of a provider holds a prefix. An edit changes a message somewhere in it, and
everything behind that is written again: 11.5 times the price at which it would have been read
(`cache_cost`). It costs nothing where the cache has expired or nothing behind it was sent.
"""

from __future__ import annotations

from math import ceil

import msgspec

from recollect.view.cache_cost import EXPIRED, FREE, REWRITE_COST, find_cached_end
from recollect.view.omissions import item_key
from recollect.view.view import View


class EditForecast(msgspec.Struct, frozen=True):
    """`saved` is negative where tokens are added; `free` says why the cache costs nothing."""

    saved: int = 0
    behind: int = 0  # tokens that are sent afresh
    requests: int = 0  # after which the saving has earned that back
    free: str = ""


def forecast_edit(before: View, after: View, *, expired: bool) -> EditForecast:
    """What the next requests gain and lose by an edit that makes one view of the other."""
    saved = before.tokens - after.tokens
    if expired:
        return EditForecast(saved, free=EXPIRED)
    behind = _sent_behind_change(before, after)
    if not behind:
        return EditForecast(saved, free=FREE)
    requests = ceil(REWRITE_COST * behind / saved) if saved > 0 else 0
    return EditForecast(saved, behind, requests)


def _sent_behind_change(before: View, after: View) -> int:
    """Tokens of what was sent behind the first difference and is sent again."""
    end = find_cached_end(before)
    items, at = before.items, before.log.at
    same = 0
    for old, new in zip(items, after.items, strict=False):
        if item_key(old) != item_key(new) or old.message != new.message:
            break
        same += 1
    sent = [one.place != "tail" or at[one.entry.id] < end for one in items]
    if not end or same >= len(items) or not sent[same]:
        return 0
    first = item_key(items[same])
    was_sent = {item_key(one) for one, known in zip(items, sent, strict=True) if known}
    rest = (one for one in after.items[same:] if item_key(one) != first)
    return sum(one.tokens for one in rest if item_key(one) in was_sent)
