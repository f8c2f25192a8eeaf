"""The difference between two contexts: what appeared, went or changed for the model, and why.

Both are counted for the same model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from recollect.codecs.cache_breaks import CacheComparison, SentRequest, compare_requests
from recollect.display.context_report import ContextReport, load_report
from recollect.display.display_text import pluralize
from recollect.display.entry_summary import summarize
from recollect.display.request_comparison import (
    ComparedRequest,
    break_rows,
    compare_last,
    describe_comparison,
)
from recollect.entries import Entry
from recollect.explanation import item_label
from recollect.past_requests import load_recorded, read_past_entries
from recollect.runtime.prompt_run import RunOptions
from recollect.runtime.request_replay import load_next
from recollect.runtime.runtime import Runtime
from recollect.view.omissions import (
    COMPACTION,
    ELSEWHERE,
    INVALID,
    UNDONE,
    ChangedItem,
    ViewDifference,
    compare_views,
)
from recollect.view.view import ViewItem
from recollect.view_loader import fold_stored

_REASONS = {
    COMPACTION: "in a snapshot",
    INVALID: "invalid",
    UNDONE: "undone",
    ELSEWHERE: "not on this path",
}


class ContextDiff(NamedTuple):
    old: ContextReport
    new: ContextReport
    difference: ViewDifference
    short: dict[str, str]  # ids of the entries that are listed


async def diff_context(
    runtime: Runtime, given: str, old: str, new: str | None, named: str | None
) -> ContextDiff:
    after = await load_report(runtime, given, new, named)
    before = await load_report(runtime, given, old, after.model.name)
    items = (*before.view.items, *after.view.items)
    ends = (one.end.id for one in (before, after) if one.end is not None)
    short = await runtime.store.short_entry_ids({*(item.entry.id for item in items), *ends})
    return ContextDiff(before, after, compare_views(before.view, after.view), short)


class SinceRequest(NamedTuple):
    """What changed since the last request, and what the caches make of it."""

    tokens: int
    difference: ViewDifference
    last: ComparedRequest  # the last request, beside the one before it
    upcoming: CacheComparison | None  # the next request, beside the last
    short: dict[str, str]


async def since_last_request(runtime: Runtime, report: ContextReport) -> SinceRequest | None:
    """None: no request was sent yet."""
    store, session = runtime.store, report.session
    last = await compare_last(store, session.id, None)
    if last is None:
        return None
    request = last.sent.request
    entries = await read_past_entries(store, session.id, request)
    counter, policy = report.view.log.counter, report.view.policy
    before = await fold_stored(store, entries, counter, policy)
    difference = await asyncio.to_thread(compare_views, before, report.view)
    upcoming = await _compare_next(runtime, report, request)
    named = {item.entry.id for view in (before, report.view) for item in view.items}
    found = (one for one in (last.found, upcoming) if one is not None)
    named.update(filter(None, (key for one in found for key in (one.entry, one.edit))))
    short = await store.short_entry_ids(named)
    tokens = report.view.tokens - before.tokens
    return SinceRequest(tokens, difference, last, upcoming, short)


async def _compare_next(
    runtime: Runtime, report: ContextReport, request: Entry
) -> CacheComparison | None:
    """What the next request keeps of the last one's bytes; None if that was not recorded."""
    old = await load_recorded(runtime.store, report.session.id, request)
    if old is None:
        return None
    options = RunOptions(model=report.model.name)
    new = (await load_next(runtime, report.session, options=options)).past
    sides = [SentRequest(one.view, one.wire, one.filled) for one in (old, new)]
    return await asyncio.to_thread(compare_requests, *sides)


def difference_lines(found: SinceRequest) -> Iterator[str]:
    """What appeared, went or changed, and then what that does to the prompt cache."""
    yield f"since the last request: {format_signed(found.tokens)} tokens in messages"
    for name, rows in diff_sections(found.difference).items():
        if not rows:
            continue
        total = format_signed(sum(row.tokens for row in rows))
        yield ""
        yield f"{pluralize(len(rows), 'item')} {name}, {total} tokens"
        for item, tokens, why in rows:
            who, key = item_label(item), found.short.get(item.entry.id, "")
            reason = f" ({why})" if why else ""
            text = f"{who}{reason}: {summarize(item.message)}"
            yield f"  {key}  {format_signed(tokens):>8}  {text}"
    yield ""
    if found.upcoming is not None:
        yield from _cache_lines("the next request", found.upcoming, found.short)
    yield ""
    where, cause = describe_comparison(found.last, found.short)
    yield f"the last request: {where}{f': {cause}' if cause else ''}"
    if found.last.found is not None and not found.last.found.held:
        yield from _cache_lines("it", found.last.found, found.short)


def _cache_lines(which: str, found: CacheComparison, short: dict[str, str]) -> Iterator[str]:
    if found.held:
        yield f"{which} keeps the prompt cache: the last request is its beginning"
        return
    yield f"{which} breaks the prompt cache: {found.describe(short.get(found.edit, ''))}"
    for label, text in break_rows(found):
        yield f"  {label:<5} {text}"


class DiffRow(NamedTuple):
    item: ViewItem
    tokens: int
    why: str = ""


def diff_sections(found: ViewDifference) -> dict[str, list[DiffRow]]:
    return {
        "appeared": [DiffRow(item, item.tokens) for item in found.appeared],
        "went": [
            DiffRow(one.item, -one.item.tokens, _REASONS.get(one.why, one.why))
            for one in found.gone
        ],
        "changed": [DiffRow(one.after, one.tokens, _change_reason(one)) for one in found.changed],
    }


def _change_reason(change: ChangedItem) -> str:
    if len(change.after.cuts) > len(change.before.cuts):
        return change.after.cuts[-1].rule
    return "restored" if change.before.cuts else ""


def format_signed(tokens: int) -> str:
    return f"+{tokens:,}" if tokens > 0 else f"−{-tokens:,}" if tokens < 0 else "0"
