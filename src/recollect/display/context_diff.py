"""The difference between two contexts: what appeared, went or changed for the model, and why.

Both are counted for the same model.
"""

from __future__ import annotations

from typing import NamedTuple

from recollect.display.context_report import ContextReport, load_report
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
