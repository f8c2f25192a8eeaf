"""The difference between two contexts as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from recollect.cli.console import paint
from recollect.cli.context_text import table_lines
from recollect.display.context_diff import (
    ContextDiff,
    DiffRow,
    diff_sections,
    format_signed,
)
from recollect.display.context_report import ContextReport, item_document
from recollect.display.dates import format_time
from recollect.display.display_text import one_line, pluralize
from recollect.display.entry_summary import summarize
from recollect.explanation import item_label


def diff_lines(diff: ContextDiff, last: int | None) -> Iterator[str]:
    old, new, found, short = diff
    yield paint.bold(one_line(new.session.title) or "(no title)")
    yield paint.dim(f"session {new.session_id} · {one_line(new.model.name)}")
    yield ""
    yield f"from  {_describe_end(old, short)}  {old.view.tokens:>10,} tokens in messages"
    change = paint.bold(format_signed(found.tokens))
    yield f"to    {_describe_end(new, short)}  {new.view.tokens:>10,} tokens in messages  {change}"
    yield ""
    sections = diff_sections(found)
    for name, lines in sections.items():
        if lines:
            yield from _section(name, lines, short, last)
    if not any(sections.values()):
        yield "the model sees the same"


def _section(
    name: str, lines: list[DiffRow], short: dict[str, str], last: int | None
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
