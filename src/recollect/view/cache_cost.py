"""What it costs to break a provider's prompt cache, and which elisions earn it back.

Providers read a cached prefix at 0.1 of the price of a token and write it at 1.25. Leaving out R
tokens makes them write the S tokens again that were sent behind the first change: 1.15 S once,
against 0.1 R saved by every further request, so it is earned back after about 11.5 S / R requests.
It costs nothing when the cache has expired, or where the changed place was not sent before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from math import ceil
from typing import NamedTuple

from msgspec.structs import replace

from recollect.entries import Compaction, Elide, Pin, Request, Restore
from recollect.view.elision import ActiveElision, is_claim_true
from recollect.view.elision_plan import PlannedElision
from recollect.view.view import View
from recollect.view.view_state import ViewState

REWRITE_COST = 11.5  # (1.25 - 0.1) / 0.1
OVER_BUDGET = "over budget"
EXPIRED = "the prompt cache has expired"
FREE = "it costs nothing, because nothing behind it was sent yet"
_EARNED = "earned back after about {:,} requests"


class WorthwhileElisions(NamedTuple):
    savings: tuple[PlannedElision, ...] = ()
    reason: str = ""


class HiddenTokens:
    """Tokens that a view leaves out from a position on; good for one state of its edits."""

    def __init__(self, view: View) -> None:
        self.state, log = view.state, view.log
        hidden = {log.at[entry]: shown.tokens for entry, shown in view.state.changed.items()}
        hidden |= dict.fromkeys(view.state.dropped, 0)
        self._places = sorted(hidden)
        saved = (log.tokens(place) - hidden[place] for place in self._places)
        self._sums = [0, *accumulate(saved)]

    def is_valid_for(self, state: ViewState) -> bool:
        return self.state.changed is state.changed and self.state.dropped is state.dropped

    def between(self, start: int, end: int) -> int:
        first, last = (self._sums[bisect_left(self._places, at)] for at in (start, end))
        return last - first


def has_cache_expired(view: View, now: int, lifetime: float) -> bool:
    at = view.state.last_request
    return at >= 0 and now - view.log.entries[at].time > lifetime * 1_000


def find_cached_end(view: View) -> int:
    """The position before which everything is still as the last request sent it; 0 if nothing is
    known to have been sent."""
    log, at = view.log, view.state.last_request
    request = log.entries[at].body if at >= 0 else None
    if not isinstance(request, Request) or request.head is None:
        return 0
    end = log.at.get(request.head, -1) + 1
    for entry in log.entries[at + 1 : view.n]:
        match entry.body:
            case Elide(items=items):
                named: Iterable[str] = [item.entry for item in items]
            case Restore(entries=names) | Pin(entries=names):
                named = names
            case Compaction(status="COMPRESSED"):
                return 0
            case _:
                continue
        end = min([end, *(log.at.get(name, end) for name in named)])
    return end


def choose_worthwhile(
    view: View,
    savings: Sequence[PlannedElision],
    count_hidden: Callable[[View], HiddenTokens],
    *,
    min_saving: int,
    payback_requests: int,
) -> WorthwhileElisions:
    """As many as are earned back: all of them, or those from some place in the session on."""
    log, end = view.log, find_cached_end(view)
    if not end:
        return WorthwhileElisions(tuple(savings), FREE)
    hidden = count_hidden(view)
    ordered = sorted((first_change(view, saving), n) for n, saving in enumerate(savings))
    saved = sum(saving.elided.tokens for saving in savings)
    rest = sum(savings[n].elided.tokens for place, n in ordered if place < end)
    start = 0
    while start < len(ordered) and saved >= max(1, min_saving):
        place, stop, here = ordered[start][0], start, 0
        while stop < len(ordered) and ordered[stop][0] == place:
            here += savings[ordered[stop][1]].elided.tokens
            stop += 1
        behind = 0
        if place < end:
            rest -= here
            sent = log.tokens_between(place + 1, end) - hidden.between(place + 1, end)
            behind = max(0, sent - rest)
        requests = ceil(REWRITE_COST * behind / saved)
        if requests <= payback_requests:
            chosen = tuple(savings[n] for n in sorted(n for _, n in ordered[start:]))
            return WorthwhileElisions(chosen, _EARNED.format(requests) if requests else FREE)
        saved, start = saved - here, stop
    return WorthwhileElisions()


def first_change(view: View, saving: PlannedElision) -> int:
    """The first message that an elision changes: its own, or one whose placeholder names it."""
    entry = saving.elided.entry
    return min(
        [view.log.at[entry], *(view.log.at[cut.what.entry] for cut in true_claims(view, entry))]
    )


def true_claims(view: View, entry: str) -> list[ActiveElision]:
    """The elisions whose placeholders say now that this entry shows what they left out."""
    state = view.state
    named = state.claims.get(entry)
    if named is None:
        return []
    return [
        cut
        for one in dict.fromkeys(named)
        if one in state.changed and view.log.at[one] >= state.base
        for cut in state.changed[one].cuts
        if entry in cut.what.shown_by and is_claim_true(view.log, state, cut)
    ]


def count_lost_claims(view: View, savings: Iterable[PlannedElision]) -> Iterator[PlannedElision]:
    """The savings, with what placeholders that name their entries become shorter or longer by."""
    if not view.state.claims:
        yield from savings
        return
    count, gone = view.log.counter.text, set[tuple[str, tuple[int, ...], tuple[int, ...]]]()
    for saving in savings:
        more = 0
        for cut in true_claims(view, saving.elided.entry):
            key = cut.what.entry, cut.what.parts, cut.what.blocks
            if key not in gone:
                gone.add(key)
                change = count(cut.what.placeholder) - count(cut.what.fallback)
                more += change * max(1, len(cut.what.blocks))
        elided = saving.elided
        yield (
            replace(saving, elided=replace(elided, tokens=elided.tokens + more)) if more else saving
        )
