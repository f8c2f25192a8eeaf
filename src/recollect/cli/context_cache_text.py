"""The prompt cache, request by request, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from recollect.cli.console import paint, terminal_width
from recollect.display.dates import format_age
from recollect.display.display_text import GAP, align_table, one_line, truncate
from recollect.display.entry_summary import summarize
from recollect.display.request_comparison import (
    UNKNOWN_CACHED,
    CacheReport,
    ComparedRequest,
    break_rows,
    describe_comparison,
    request_document,
)
from recollect.entries import Elide, Entry, Message, Usage

DEFAULT_WIDTH = 120


def cache_lines(report: CacheReport, *, detailed: bool) -> Iterator[str]:
    yield paint.bold(one_line(report.session.title) or "(no title)")
    if not report.requests:
        yield "no request was sent in this session"
        return
    if not detailed:
        yield from _request_table(report)
    broken = [one for one in report.requests if one.found is not None and not one.found.held]
    for one in broken[-1:]:
        yield ""
        yield from _break_lines(report, one)
    if detailed and not broken:
        one = report.requests[-1]
        first, second = (report.short[r.request.id] for r in (one.earlier, one.sent) if r)
        where, cause = describe_comparison(one, report.short)
        yield f"from request {first} to request {second}: {where}"
        if cause:
            yield paint.dim(f"  {cause}")


def _request_table(report: CacheReport) -> Iterator[str]:
    rows = [["REQUEST", "SENT", "INPUT", "CACHED", "WRITTEN", "SAME", "PROMPT CACHE"]]
    for one in report.requests:
        found, request = one.found, one.sent.request
        share = f"{100 * found.at / found.size:.0f} %" if found is not None else ""
        where, cause = describe_comparison(one, report.short)
        held = found is not None and (not cause or cause == UNKNOWN_CACHED)
        cells = [report.short[request.id], format_age(request.time), *_counts(one.sent.usage)]
        rows.append([*cells, share, "held" if held else cause or where])
    width = terminal_width() or DEFAULT_WIDTH
    head, *body = align_table(rows, width=width, stretch=6, numbers=(2, 3, 4, 5))
    yield paint.dim(GAP.join(head).rstrip())
    yield from (GAP.join([paint(row[0], fg="yellow"), *row[1:]]).rstrip() for row in body)
    if any("?" in row[2:5] for row in rows):
        yield paint.dim("?: not reported by the provider")


def _counts(usage: Usage | None) -> list[str]:
    """The input, and what of it was cached and written; `?` where nothing was reported."""
    if usage is None:
        return ["?", "?", "?"]
    written = f"{usage.written:,}" if usage.written or usage.cached is not None else "?"
    return [f"{usage.input:,}", "?" if usage.cached is None else f"{usage.cached:,}", written]


def _break_lines(report: CacheReport, one: ComparedRequest) -> Iterator[str]:
    found, short = one.found, report.short
    assert found is not None
    assert one.earlier is not None
    first, second = short[one.earlier.request.id], short[one.sent.request.id]
    yield paint.bold(f"from request {first} to request {second}")
    why, byte, was, now, (_, behind) = break_rows(found)
    for label, text in (why, byte):
        yield f"  {label:<5} {text}"
    for name, key in (("entry", found.entry), ("edit", found.edit)):
        entry = report.entries.get(key)
        if entry is not None:
            yield f"  {name:<5} {paint(short[key], fg='yellow')}  {_describe(entry)}"
    for label, text in (was, now):
        yield f"  {label:<5} {text}"
    yield paint.dim(f"  {behind}")


def _describe(entry: Entry) -> str:
    width = (terminal_width() or DEFAULT_WIDTH) - 20
    if isinstance(entry.body, Message):
        return truncate(one_line(summarize(entry.body)), width)
    kind = type(entry.body).__name__.lower()
    rule = f" by {one_line(entry.body.rule)}" if isinstance(entry.body, Elide) else ""
    return truncate(f"{kind}{rule}, {format_age(entry.time)}", width)


# --- JSON ----------------------------------------------------------------------------------------


def cache_document(report: CacheReport) -> dict[str, Any]:
    return {
        "session": msgspec.to_builtins(report.session),
        "requests": [request_document(one) for one in report.requests],
    }
