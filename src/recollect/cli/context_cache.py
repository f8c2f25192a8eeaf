"""The prompt cache, request by request: what a provider read from it, and what broke it.

`load_cache_report` compares each of the newest requests with the one before it; with `against`, one
request with any earlier one. Requests that an older version sent did not record what is needed for
that, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from recollect.cli.console import paint, terminal_width
from recollect.cli.dates import format_age
from recollect.cli.display_text import GAP, align_table, one_line, pluralize, truncate
from recollect.cli.entry_display import summarize
from recollect.codecs.cache_breaks import CacheComparison
from recollect.entries import Elide, Entry, Message, Request, Usage
from recollect.errors import BadInput
from recollect.explanation import fresh_tokens
from recollect.past_requests import AnsweredRequest, compare_recorded, recent_requests
from recollect.runtime.runtime import Runtime
from recollect.store.contract import SessionInfo, Store

DEFAULT_WIDTH = 120
MAX_LISTED = 1_000  # with --all; each is encoded
NOT_RECORDED = "not recorded by the version that sent it"
UNKNOWN_CACHED = "the provider does not report what it cached"


class ComparedRequest(NamedTuple):
    """A request, and how much of an earlier one it begins with."""

    sent: AnsweredRequest
    earlier: AnsweredRequest | None = None
    found: CacheComparison | None = None


class CacheReport(NamedTuple):
    session: SessionInfo
    requests: tuple[ComparedRequest, ...]  # oldest first
    entries: dict[str, Entry]  # the messages and edits that broke it
    short: dict[str, str]


async def load_cache_report(
    runtime: Runtime, given: str, at: str | None, against: str | None, last: int | None
) -> CacheReport:
    """The newest `last` requests up to `at`, each beside the one before it; or `at` alone beside
    `against`."""
    store, info = runtime.store, await runtime.find_session(given)
    end = None if at is None else (await _request(store, info, at)).request.id
    pairs: Iterable[tuple[AnsweredRequest | None, AnsweredRequest]]
    if against is not None:
        earlier = await _request(store, info, against)
        pairs = [(earlier, one) for one in await recent_requests(store, info.id, 1, end)]
    else:
        count = MAX_LISTED if last is None else last
        found = await recent_requests(store, info.id, count + 1, end)
        pairs = list(zip((None, *found), found, strict=False))[-count:]
    compared = tuple([await _compare(store, info.id, *pair) for pair in pairs])
    return await _with_entries(store, CacheReport(info, compared, {}, {}))


async def compare_last(store: Store, session: str, at: str | None) -> ComparedRequest | None:
    """The newest request beside the one before it."""
    found = await recent_requests(store, session, 2, at)
    if not found:
        return None
    return await _compare(store, session, found[0] if len(found) > 1 else None, found[-1])


async def _request(store: Store, session: SessionInfo, given: str) -> AnsweredRequest:
    """The request that is named, or the one that a named reply answers."""
    _, entry = await store.entry(given, session=session.id)
    if isinstance(entry.body, Request):
        return AnsweredRequest(entry)
    found = await recent_requests(store, session.id, 1, entry.id)
    if not found:
        raise BadInput(f"no request was sent before entry {given}; name a later one")
    return found[0]


async def _compare(
    store: Store, session: str, earlier: AnsweredRequest | None, sent: AnsweredRequest
) -> ComparedRequest:
    if earlier is None:
        return ComparedRequest(sent)
    found = await compare_recorded(store, session, earlier.request, sent.request)
    return ComparedRequest(sent, earlier, found)


async def _with_entries(store: Store, report: CacheReport) -> CacheReport:
    named: set[str] = set()
    entries: dict[str, Entry] = {}
    for one in report.requests:
        named |= {r.request.id for r in (one.sent, one.earlier) if r is not None}
        for each in filter(None, (one.found.entry, one.found.edit) if one.found else ()):
            entries[each] = (await store.entry(each))[1]
    short = await store.short_entry_ids(named | set(entries))
    return report._replace(entries=entries, short=short)


# --- text ----------------------------------------------------------------------------------------


def describe_comparison(compared: ComparedRequest, short: Mapping[str, str]) -> tuple[str, str]:
    """That the cache held, or where it broke; and why."""
    if compared.earlier is None:
        return "this is the first request", ""
    found, usage = compared.found, compared.sent.usage
    if found is None:
        return NOT_RECORDED, ""
    cause = found.cause
    if found.held and usage is not None and not usage.cached:
        unread = "but the provider reports nothing cached"
        cause = UNKNOWN_CACHED if usage.cached is None else unread
    return found.describe(short.get(found.edit, "")), one_line(cause)


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
    yield f"  why   {one_line(found.cause)}"
    where = f", in `{found.field}`" if found.field else ""
    yield f"  byte  {found.at:,} of {found.size:,} is the first that differs{where}"
    for name, key in (("entry", found.entry), ("edit", found.edit)):
        entry = report.entries.get(key)
        if entry is not None:
            yield f"  {name:<5} {paint(short[key], fg='yellow')}  {_describe(entry)}"
    yield f"  was   {one_line(found.was)}"
    yield f"  now   {one_line(found.now)}"
    behind = f"{pluralize(found.tokens_behind, 'token')} of messages behind it are sent afresh"
    yield paint.dim(f"  about {behind}")


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


def request_document(one: ComparedRequest) -> dict[str, Any]:
    request, earlier = one.sent.request, one.earlier
    return {
        "request": request.id,
        "time": request.time,
        "reply": one.sent.reply.id if one.sent.reply is not None else None,
        "usage": usage_document(one.sent.usage) if one.sent.usage is not None else None,
        "compared_with": earlier.request.id if earlier is not None else None,
        "comparison": msgspec.to_builtins(one.found) if one.found is not None else None,
    }


def usage_document(usage: Usage) -> dict[str, int | None]:
    names = ("input", "cached", "written", "output", "thoughts", "total")
    return {name: getattr(usage, name) for name in names} | {"fresh": fresh_tokens(usage)}
