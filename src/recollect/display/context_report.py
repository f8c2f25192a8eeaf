"""What a model sees of a session, at the head or at an earlier entry, counted for that model.

Loading a report writes nothing. The model is the one the next request would go to, unless the user
names another. In JSON nothing is shortened away, but messages appear as summaries; `recollect show
ID --curated --json` has their full text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeGuard

import msgspec

from recollect.agent.exchange import count_tools
from recollect.agent.fit_context import reserve_for_tools
from recollect.agent.prepared_request import PreparedRequest
from recollect.compaction.budget import Budget
from recollect.display.entry_summary import summarize
from recollect.display.planned_elisions import (
    PlannedElisions,
    edits_added,
    name_subjects,
    planned_by_rule,
)
from recollect.display.request_comparison import (
    ComparedRequest,
    compare_last,
    request_document,
    usage_document,
)
from recollect.display.short_ids import shorten_session_id
from recollect.entries import Entry, Message, Request, Usage
from recollect.explanation import item_label
from recollect.models.resolve import ResolvedModel
from recollect.past_requests import AnsweredRequest, read_past_entries
from recollect.runtime.model_choice import next_model
from recollect.runtime.prepare_apart import prepare_apart
from recollect.runtime.request_replay import past_tools
from recollect.runtime.runtime import Runtime
from recollect.session import Session
from recollect.store.contract import SessionInfo, Store
from recollect.store.ids import now
from recollect.tokens import counter_for
from recollect.view.curation import is_initial
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.omissions import (
    COMPACTION,
    Omission,
    count_by_category,
    find_omissions,
    items_replaced,
    share_initial,
)
from recollect.view.provider_counts import ProviderCount, count_as_provider
from recollect.view.view import View, ViewItem
from recollect.view_loader import fold_stored, load_view, read_needed_entries


class RequestCost(NamedTuple):
    """The provider's count for a request, and our count for the same messages."""

    request: Entry | None  # None: another program sent it
    reply: Entry
    usage: Usage
    our_count: int  # of what the log has of it

    @property
    def difference(self) -> float:
        """How far our count is from the provider's, as a share of the latter."""
        return self.our_count / self.usage.input - 1 if self.usage.input else 0.0


class NextRequest(NamedTuple):
    """The next request: what is added before it, and what it comes to."""

    tokens: int
    added: tuple[ViewItem, ...]  # instructions, environment, a date; not stored yet
    compacted: bool
    planned: Mapping[str, PlannedElisions] = MappingProxyType({})  # by rule
    unidentified: int = 0  # reads that stay because they name no file


class ContextReport(NamedTuple):
    session: SessionInfo
    session_id: str  # short
    view: View
    model: ResolvedModel
    budget: Budget
    window_is_known: bool
    tool_tokens: int
    at: Entry | None = None  # the earlier entry reported on; None for the head
    next: NextRequest | None = None  # None for an earlier entry
    before_compaction: View | None = None
    last_request: RequestCost | None = None
    compared: ComparedRequest | None = None  # the last request beside the one before it
    short: Mapping[str, str] = MappingProxyType({})  # ids of the entries that are listed

    @property
    def added(self) -> tuple[ViewItem, ...]:
        return self.next.added if self.next is not None else ()

    @property
    def tokens(self) -> int:
        """Of everything in a request at this point, before anything is left out of it."""
        added = sum(item.tokens for item in self.added)
        return self.view.tokens + added + self.tool_tokens

    @property
    def provider_count(self) -> ProviderCount:
        """The same as the provider would count it, by what it reported so far."""
        beside = self.tokens - self.view.tokens
        return count_as_provider(self.view, beside, self.model.name, 2 * self.budget.window)

    @property
    def threshold(self) -> int:
        """Where compaction begins, tools included."""
        return reserve_for_tools(self.budget, self.tool_tokens).threshold + self.tool_tokens

    @property
    def categories(self) -> dict[str, int]:
        """The tokens of each category; together they are `tokens`."""
        found: dict[str, int] = {"tools": self.tool_tokens}
        found.update(count_by_category(self.view).items())
        for item in self.added:
            shares = (
                share_initial(item, self.view.log.counter)
                if is_initial(item.message)
                else [("messages", item.tokens)]
            )
            for category, tokens in shares:
                found[category] += tokens
        return found

    @property
    def unreported(self) -> AnsweredRequest | None:
        """The newest request, if the provider reported no count for it."""
        sent, cost = self.compared.sent if self.compared is not None else None, self.last_request
        if sent is None or (cost is not None and cost.request == sent.request):
            return None
        at = self.view.log.at  # the request that is reported on is not in its own view
        is_older = cost is not None and at.get(sent.request.id, self.view.n) < at[cost.reply.id]
        return None if is_older else sent

    @property
    def end(self) -> Entry | None:
        """The entry reported on; None if the session has none."""
        return self.at or (self.view.entries[-1] if self.view.n else None)

    @property
    def replaced(self) -> tuple[ViewItem, ...]:
        """The items that the compaction in force replaced."""
        before = self.before_compaction
        return items_replaced(before, self.view) if before is not None else ()

    @property
    def omissions(self) -> list[Omission]:
        """Everything left out; for a compaction with our own count instead of its record's."""
        found = list(find_omissions(self.view))
        if self.before_compaction is not None and found and found[0].rule == COMPACTION:
            tokens = sum(item.tokens for item in self.replaced)
            found[0] = msgspec.structs.replace(found[0], tokens=tokens)
        return found


async def load_report(
    runtime: Runtime, given: str, at: str | None = None, named: str | None = None, prompt: str = ""
) -> ContextReport:
    """The report for a session's head, or for an earlier entry; with a prompt, for the request
    that it would begin."""
    store = runtime.store
    info = await runtime.find_session(given)
    entry = None if at is None else (await store.entry(at, session=info.id))[1]
    entries = await _read_entries(store, info, entry)
    model = next_model(runtime.settings, entries, named or _model_of(entry))
    view = await fold_stored(store, entries, counter_for(model.name), runtime.curation)
    short = await shorten_session_id(store, info.id)
    tools = await past_tools(runtime, model, entry)
    tool_tokens = count_tools(tools, view.log.counter)
    budget, known = runtime.budget(model), runtime.knows_window(model)
    report = ContextReport(info, short, view, model, budget, known, tool_tokens, entry)
    if at is not None:
        return report
    return report._replace(next=await prepare_next(runtime, report, prompt))


async def prepare_next(runtime: Runtime, report: ContextReport, prompt: str) -> NextRequest:
    """What would be sent now; nothing of it is stored."""
    view = report.view
    session = Session(runtime.store, report.session.id, view)
    message = await runtime.prompt_message(prompt) if prompt else None
    prepared = await prepare_apart(runtime, session, report.model, message)
    rules = ElisionRules.from_settings(runtime.settings, str(runtime.folders.cwd))
    return await asyncio.to_thread(_describe_next, view, prepared, rules)


def _describe_next(view: View, prepared: PreparedRequest, rules: ElisionRules) -> NextRequest:
    added = tuple(item for item in prepared.view.items if _is_added(item, view))
    compacted = any(one.compaction is not None for one in prepared.reduced)
    plan = plan_elisions(view, now(), rules)
    edits = edits_added(prepared.view, view)
    planned = planned_by_rule(edits, name_subjects(view, plan, edits))
    return NextRequest(prepared.tokens, added, compacted, planned, plan.unidentified)


def _is_added(item: ViewItem, stored: View) -> bool:
    return item.place != "snapshot" and item.entry.id not in stored.log.at


def _model_of(entry: Entry | None) -> str:
    return entry.body.model if entry is not None and isinstance(entry.body, Request) else ""


async def _read_entries(store: Store, session: SessionInfo, at: Entry | None) -> tuple[Entry, ...]:
    if at is not None:
        return await read_past_entries(store, session.id, at)
    return await read_needed_entries(store, session.id) if session.head else ()


async def load_full_report(
    runtime: Runtime, given: str, at: str | None = None, named: str | None = None, prompt: str = ""
) -> ContextReport:
    """The report with the cost of the last request and the view before the compaction in force."""
    report = await load_report(runtime, given, at, named, prompt)
    store = runtime.store
    compaction, before = report.view.compaction, None
    if compaction is not None and compaction.parent is not None:
        before = await _view_at(store, report, compaction.parent)
    report = report._replace(
        before_compaction=before,
        compared=await _compare_last(store, report),
    )
    report = report._replace(last_request=await _last_request(store, report))
    return report._replace(short=await _short_ids(store, report))


async def _short_ids(store: Store, report: ContextReport) -> dict[str, str]:
    listed = {item.entry.id for item in report.view.items}
    for one in report.omissions:
        listed.update(filter(None, (one.entry, one.handle)))
    if report.end is not None:
        listed.add(report.end.id)
    if report.compared is not None and report.compared.found is not None:
        listed.update(filter(None, (report.compared.found.entry, report.compared.found.edit)))
    sent = report.compared.sent.request if report.compared is not None else None
    cost = report.last_request.request if report.last_request is not None else None
    listed.update(request.id for request in (sent, cost) if request is not None)
    return await store.short_entry_ids(listed)


async def _compare_last(store: Store, report: ContextReport) -> ComparedRequest | None:
    if not report.view.n:
        return None
    at = report.at.id if report.at is not None else None
    return await compare_last(store, report.session.id, at)


async def _last_request(store: Store, report: ContextReport) -> RequestCost | None:
    """The request that is reported on, or the newest one that a reply told the cost of."""
    if report.compared is not None and report.at is not None:
        sent, reply, usage = report.compared.sent
        if sent.id == report.at.id and reply is not None and has_count(usage):
            return RequestCost(sent, reply, usage, report.tokens)
    for reply in reversed(report.view.entries):
        body = reply.body
        if isinstance(body, Message) and body.role == "model" and has_count(body.usage):
            sent_view = await _view_at(store, report, reply.parent) if reply.parent else View.fold()
            asked = sent_view.log.entries[sent_view.n - 1] if sent_view.n else None
            if asked is None or not isinstance(asked.body, Request):
                return RequestCost(None, reply, body.usage, sent_view.tokens)
            count = asked.body.tokens or sent_view.tokens
            return RequestCost(asked, reply, body.usage, count)
    return None


def has_count(usage: Usage | None) -> TypeGuard[Usage]:
    """Whether the provider counted the request; some servers report a zero."""
    return usage is not None and usage.input > 0


async def _view_at(store: Store, report: ContextReport, entry: str) -> View:
    counter, policy = report.view.log.counter, report.view.policy
    return await load_view(store, report.session.id, at=entry, counter=counter, policy=policy)


# --- JSON ----------------------------------------------------------------------------------------


def context_document(report: ContextReport) -> dict[str, Any]:
    view, budget = report.view, report.budget
    planned = report.next.planned if report.next is not None else {}
    return {
        "session": msgspec.to_builtins(report.session),
        "at": report.end.id if report.end else None,
        "model": report.model.name,
        "model_is_known": report.window_is_known,
        "exact": view.log.counter.exact,
        "tokens": report.tokens,
        "window": budget.window,
        "threshold": report.threshold,
        "share": report.tokens / budget.window,
        "categories": report.categories,
        "next_request": _next_document(report.next) if report.next else None,
        "last_request": _request_document(report.last_request) if report.last_request else None,
        "provider_tokens": report.provider_count.tokens,
        "provider_basis": report.provider_count.basis,
        "provider_bound": report.provider_count.bound,
        "calibration": msgspec.to_builtins(report.provider_count.calibration),
        "prompt_cache": request_document(report.compared) if report.compared else None,
        "items": [item_document(item) for item in view.items],
        "left_out": [msgspec.to_builtins(one) for one in report.omissions],
        "compaction": _compaction_document(report),
        "would_be_left_out": {rule: total._asdict() for rule, total in planned.items()},
        "problems": list(view.problems),
    }


def _next_document(request: NextRequest) -> dict[str, Any]:
    added = [item_document(item) | {"entry": None, "time": None} for item in request.added]
    return {"tokens": request.tokens, "added": added, "compacted": request.compacted}


def _request_document(cost: RequestCost) -> dict[str, Any]:
    counts = {**usage_document(cost.usage), "our_count": cost.our_count}
    request = cost.request.id if cost.request is not None else None
    return {"request": request, "entry": cost.reply.id, "time": cost.reply.time, **counts}


def item_document(item: ViewItem) -> dict[str, Any]:
    return {
        "entry": item.entry.id,
        "time": item.entry.time,
        "place": item.place,
        "who": item_label(item),
        "role": item.message.role,
        "tokens": item.tokens,
        "pinned": item.pinned,
        "rules": [cut.rule for cut in item.cuts],
        "summary": summarize(item.message),
    }


def _compaction_document(report: ContextReport) -> dict[str, Any] | None:
    entry, gone = report.view.compaction, report.replaced
    if entry is None:
        return None
    return {
        "entry": entry.id,
        "time": entry.time,
        "messages": sum(item.place != "snapshot" for item in gone),
        "tokens": sum(item.tokens for item in gone),
    }
