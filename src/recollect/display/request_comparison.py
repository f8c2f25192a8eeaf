"""What each request took from the provider's prompt cache, and what broke it.

`load_cache_report` compares each of the newest requests with the one before it; with `against`, one
request with any earlier one. Requests that an older version sent did not record what is needed for
that, and the report says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from recollect.codecs.cache_breaks import CacheComparison
from recollect.display.display_text import one_line, pluralize
from recollect.entries import Entry, Request, Usage
from recollect.errors import BadInput
from recollect.explanation import fresh_tokens
from recollect.past_requests import AnsweredRequest, compare_recorded, recent_requests
from recollect.runtime.runtime import Runtime
from recollect.store.contract import SessionInfo, Store

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


def break_rows(found: CacheComparison) -> Iterator[tuple[str, str]]:
    """Why a prompt cache was broken and where, with what stood there, each with a label."""
    yield "why", one_line(found.cause)
    where = f", in `{found.field}`" if found.field else ""
    yield "byte", f"{found.at:,} of {found.size:,} is the first that differs{where}"
    yield "was", one_line(found.was)
    yield "now", one_line(found.now)
    behind = f"{pluralize(found.tokens_behind, 'token')} of messages behind it are sent afresh"
    yield "", f"about {behind}"


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
