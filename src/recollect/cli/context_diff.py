"""The difference between two contexts: what appeared, went or changed for the model, and why.

Both are counted for the same model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from recollect.cli.console import paint
from recollect.cli.context_report import ContextReport, item_document, load_report
from recollect.cli.context_text import table_lines
from recollect.cli.dates import format_time
from recollect.cli.display_text import one_line, pluralize
from recollect.cli.entry_display import summarize
from recollect.explanation import item_label
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


def diff_lines(diff: ContextDiff, last: int | None) -> Iterator[str]:
    old, new, found, short = diff
    yield paint.bold(one_line(new.session.title) or "(no title)")
    yield paint.dim(f"session {new.session_id} · {one_line(new.model.name)}")
    yield ""
    yield f"from  {_describe_end(old, short)}  {old.view.tokens:>10,} tokens in messages"
    change = paint.bold(format_signed(found.tokens))
    yield f"to    {_describe_end(new, short)}  {new.view.tokens:>10,} tokens in messages  {change}"
    yield ""
    sections = _sections(found)
    for name, lines in sections.items():
        if lines:
            yield from _section(name, lines, short, last)
    if not any(sections.values()):
        yield "the model sees the same"


class _DiffRow(NamedTuple):
    item: ViewItem
    tokens: int
    why: str = ""


def _sections(found: ViewDifference) -> dict[str, list[_DiffRow]]:
    return {
        "appeared": [_DiffRow(item, item.tokens) for item in found.appeared],
        "went": [
            _DiffRow(one.item, -one.item.tokens, _REASONS.get(one.why, one.why))
            for one in found.gone
        ],
        "changed": [_DiffRow(one.after, one.tokens, _change_reason(one)) for one in found.changed],
    }


def _change_reason(change: ChangedItem) -> str:
    if len(change.after.cuts) > len(change.before.cuts):
        return change.after.cuts[-1].rule
    return "restored" if change.before.cuts else ""


def _section(
    name: str, lines: list[_DiffRow], short: dict[str, str], last: int | None
) -> Iterator[str]:
    total = format_signed(sum(line.tokens for line in lines))
    yield paint.bold(f"{pluralize(len(lines), 'item')} {name}") + f", {total} tokens"
    shown = lines if last is None else lines[-last:]
    rows = [["ENTRY", "WHO", "TOKENS", "WHY", "WHAT"]]
    for item, tokens, why in shown:
        cells = [short[item.entry.id], item_label(item), format_signed(tokens), one_line(why)]
        rows.append([*cells, summarize(item.message)])
    head, *body = table_lines(rows)
    yield head
    if len(shown) < len(lines):
        yield paint.dim(f"… {len(lines) - len(shown):,} before these; --all shows them")
    yield from body
    yield ""


def _describe_end(report: ContextReport, short: dict[str, str]) -> str:
    end = report.end
    return f"{short[end.id]}  {format_time(end.time)}" if end is not None else "its beginning"


def format_signed(tokens: int) -> str:
    return f"+{tokens:,}" if tokens > 0 else f"−{-tokens:,}" if tokens < 0 else "0"


def diff_document(diff: ContextDiff) -> dict[str, Any]:
    old, new, found, _ = diff
    return {
        "session": msgspec.to_builtins(new.session),
        "model": new.model.name,
        "from": _end_document(old),
        "to": _end_document(new),
        "tokens": found.tokens,
        "appeared": [item_document(item) for item in found.appeared],
        "gone": [item_document(one.item) | {"why": one.why} for one in found.gone],
        "changed": [
            item_document(change.after) | {"tokens_before": change.before.tokens}
            for change in found.changed
        ],
    }


def _end_document(report: ContextReport) -> dict[str, Any]:
    return {"at": report.end.id if report.end else None, "tokens": report.view.tokens}
