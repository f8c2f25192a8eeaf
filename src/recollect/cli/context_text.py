"""A context report as text: how full the window is, with what, and what was left out.

Stored text is sanitized on the way. Of a long list only the `last` items are shown, all if that is
None, and a line says how many more there are.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping

from recollect.agent.reminders import name_addition
from recollect.cli.console import paint, terminal_width
from recollect.display.context_report import ContextReport, NextRequest
from recollect.display.context_rows import describe_basis
from recollect.display.dates import format_age, format_time
from recollect.display.display_text import GAP, align_table, one_line, pluralize
from recollect.display.entry_summary import summarize
from recollect.display.planned_elisions import PlannedElisions
from recollect.display.request_comparison import describe_comparison
from recollect.display.token_bar import draw_bar, format_percent
from recollect.entries import Compaction, Entry, Message, Request
from recollect.explanation import format_usage, item_label
from recollect.past_requests import AnsweredRequest
from recollect.tokens import MAX_FACTOR, MIN_FACTOR
from recollect.view.edit_reasons import with_handles
from recollect.view.omissions import (
    INVALID,
    Omission,
    OmissionTotal,
    total_by_rule,
)
from recollect.view.view import View, ViewItem

DEFAULT_WIDTH = 120  # columns when stdout is not a terminal
BAR_WIDTH = 30
FILES_SHOWN = 5  # of each rule
PROBLEMS_SHOWN = 5
EDITS_SHOWN = 5


def context_lines(report: ContextReport, last: int | None) -> Iterator[str]:
    short = report.short
    yield from _heading(report, short)
    yield from _window(report)
    yield from _categories(report)
    requests = (*_last_request(report), *_next_request(report))
    yield from (*requests, "") if requests else ()
    yield from _items(report, last)
    yield from _omissions(report, short, last)
    if report.next is not None:
        yield from _planned(report.next)
    yield from _failed_attempt(report.view)
    yield from _problems(report.view)


def _heading(report: ContextReport, short: Mapping[str, str]) -> Iterator[str]:
    yield paint.bold(one_line(report.session.title) or "(no title)")
    at, end = report.at, report.end
    if at is None:
        where = f"at its head {short[end.id]}" if end is not None else "at its head"
    elif isinstance(at.body, Request):
        where = f"as it was for request {short[at.id]}, {format_time(at.body.as_of)}"
    else:
        where = f"as it was at {short[at.id]}, {format_time(at.time)}"
    yield paint.dim(f"session {report.session_id} · {where}")
    yield ""


def _window(report: ContextReport) -> Iterator[str]:
    counted, budget = report.provider_count, report.budget
    tokens, share = counted.tokens, counted.tokens / budget.window
    colour = "green" if tokens <= report.threshold else "yellow" if share <= 1 else "red"
    total = paint(f"{tokens:,} tokens", bold=True)
    about, how = describe_basis(report)
    yield f"{about}{total} {how}, {format_percent(share)} of {_describe_window(report)}"
    filled = draw_bar(tokens, budget.window, 2 * BAR_WIDTH)
    yield paint(filled, fg=colour) + paint.dim("░" * (2 * BAR_WIDTH - len(filled)))
    left = report.threshold - tokens
    distance = f"{left:,} below" if left >= 0 else f"{-left:,} above"
    yield paint.dim(f"{distance} the compaction threshold of {report.threshold:,}")
    if tokens != report.tokens:
        own = "not corrected" if counted.basis == "ours" else "as we count them"
        yield paint.dim(f"below, tokens are {own}: {report.tokens:,} in all")
    yield ""


def _describe_window(report: ContextReport) -> str:
    guess = "" if report.window_is_known else ", an unknown model: a guess"
    return f"the {report.budget.window:,} of {one_line(report.model.name)}{guess}"


def _categories(report: ContextReport) -> Iterator[str]:
    shares = report.categories
    most = max(shares.values())
    for category, tokens in shares.items():
        share = format_percent(tokens / report.budget.window) if tokens else ""
        bar = paint(draw_bar(tokens, most, BAR_WIDTH), fg="blue")
        line = f"{category:<12}  {tokens:>10,}  {share:>8}  {bar}"
        yield line.rstrip() if tokens else paint.dim(line.rstrip())
    yield ""


def _last_request(report: ContextReport) -> Iterator[str]:
    """The last request and what became of the prompt cache; if the provider reported nothing for
    it, also the newest request with a report."""
    cost, last = report.last_request, report.unreported
    if last is not None:
        yield from _unreported_request(report, last)
        yield from _prompt_cache(report)
    if cost is None:
        return
    count = f"{format_usage(cost.usage)}, reply {cost.usage.output:,}"
    if last is not None:
        of = f"request {report.short[cost.request.id]}" if cost.request else "an imported request"
        yield f"newest report, of {of}: {count}"
    else:
        yield f"{_which_request(report, cost.request)} request: {count}"
    yield paint.dim(f"{format_age(cost.reply.time)}; {_describe_count(report)}")
    if last is None:
        yield from _prompt_cache(report)


def _which_request(report: ContextReport, request: Entry | None) -> str:
    return "this" if request is not None and request == report.at else "last"


def _unreported_request(report: ContextReport, last: AnsweredRequest) -> Iterator[str]:
    told = "no count was reported" if last.reply is not None else "no reply was stored"
    yield f"{_which_request(report, last.request)} request: {told}"
    tokens = last.request.body.tokens if isinstance(last.request.body, Request) else 0
    yield paint.dim(f"{format_age(last.request.time)}; we count {tokens:,} for it")


def _prompt_cache(report: ContextReport) -> Iterator[str]:
    compared, cost = report.compared, report.last_request
    if compared is None:
        return
    where, cause = describe_comparison(compared, report.short)
    other = report.unreported is None and (cost is None or cost.request != compared.sent.request)
    of = f" of request {report.short[compared.sent.request.id]}" if other else ""
    yield f"prompt cache{of}: {where}"
    if cause:
        yield paint.dim(f"  {cause}")


def _describe_count(report: ContextReport) -> str:
    """How far our count is from the provider's, for the last request and as a rule."""
    cost, learned = report.last_request, report.provider_count.calibration
    assert cost is not None
    if cost.request is None:
        return f"we count {cost.our_count:,} for what the log has of it"
    share = 100 * cost.difference
    apart = f", {abs(share):.1f} % {'more' if share > 0 else 'less'}" if round(share, 1) else ""
    text = f"we count {cost.our_count:,} for it{apart}"
    last = report.provider_count.last
    if last is not None and report.provider_count.basis == "ours":
        return f"{text}; its report is not used, because it cannot be a count of this request"
    if not learned.samples:
        return text
    limits = dict.fromkeys((MIN_FACTOR, MAX_FACTOR), ", its limit")
    factor = f"factor {learned.factor:.2f}{limits.get(learned.factor, '')}"
    return f"{text} ({factor}, error {100 * learned.error:.1f} %)"


def _next_request(report: ContextReport) -> Iterator[str]:
    if (request := report.next) is None:
        return
    if request.added:
        named = ((name_addition(one.message), one.tokens) for one in request.added)
        listed = ", ".join(f"{name} ({pluralize(tokens, 'token')})" for name, tokens in named)
        yield from _wrap("", f"the next request also has what is not stored yet: {listed}")
    if request.tokens != report.tokens:
        how = "compaction" if request.compacted else "leaving out what is listed below"
        yield f"the next request: {request.tokens:,} tokens, after {how}"


# --- what the model sees -------------------------------------------------------------------------


def _item_marks(item: ViewItem) -> str:
    pinned = "first" if item.place == "first" else "pinned"
    marks = [pinned if item.pinned else "kept" if item.place == "kept" else ""]
    return ", ".join(filter(None, [*marks, "shortened" if item.cuts else ""]))


def _items(report: ContextReport, last: int | None) -> Iterator[str]:
    view, short = report.view, report.short
    fixed = [item for item in view.items if item.place != "tail"]
    tail = view.items[len(fixed) :]
    newest = tail if last is None else tail[-last:]
    hidden = tail[: len(tail) - len(newest)]
    if not view.items:
        yield "nothing: the session has no messages"
        yield ""
        return
    rows = [["ENTRY", "WHO", "TOKENS", "MARK", "WHAT THE MODEL SEES"]]
    for item in (*fixed, *newest):
        cells = [short[item.entry.id], item_label(item), f"{item.tokens:,}", _item_marks(item)]
        rows.append([*cells, _summarize(report, item.message)])
    shown = table_lines(rows)
    yield from shown[: 1 + len(fixed)]
    if hidden:
        tokens = sum(item.tokens for item in hidden)
        count = pluralize(len(hidden), "item")
        yield paint.dim(f"… {count}, {tokens:,} tokens; --all shows them")
    yield from shown[1 + len(fixed) :]
    yield ""


def table_lines(rows: list[list[str]]) -> list[str]:
    """A table of five columns with a heading: an entry's id, a word, tokens, a remark that is left
    out if no row has one, and free text."""
    width = terminal_width() or DEFAULT_WIDTH
    if not any(row[3] for row in rows[1:]):
        rows = [[*row[:3], row[4]] for row in rows]
    head, *body = align_table(rows, width=width, stretch=len(rows[0]) - 1, numbers=(2,))
    lines = [paint.dim(GAP.join(head).rstrip())]
    return lines + [GAP.join([paint(row[0], fg="yellow"), *row[1:]]).rstrip() for row in body]


def _summarize(report: ContextReport, message: Message) -> str:
    """One line; files of the session's project are named by their paths below it."""
    text, root = summarize(message), report.session.project
    return text.replace(root.rstrip(os.sep) + os.sep, "") if root else text


# --- what was left out ---------------------------------------------------------------------------


def _omissions(report: ContextReport, short: Mapping[str, str], last: int | None) -> Iterator[str]:
    found = report.omissions
    if not found:
        yield "nothing was left out"
        return
    totals = total_by_rule(found).items()
    sums = ", ".join(f"{one_line(rule)} {_format_total(total)}" for rule, total in totals)
    yield from _wrap("left out: ", sums)
    shown = found if last is None else found[:1] + found[1:][-last:]
    rows = [["ENTRY", "RULE", "TOKENS", "SINCE", "WHAT WAS LEFT OUT"]]
    for one in shown:
        cells = [short[one.entry], one_line(one.rule), f"{one.tokens:,}", format_age(one.since)]
        rows.append([*cells, _describe_omission(report, one)])
    yield from table_lines(rows)
    if len(shown) < len(found):
        yield paint.dim(f"… {len(found) - len(shown):,} more; --all shows them")
    yield from _reasons(found, last)
    handle = next((one.handle for one in reversed(shown) if one.handle), "")
    if handle:
        command = f"recollect context {report.session_id} --restore {short[handle]}"
        yield paint.dim(f"`{command}` brings the last of them back")


def _wrap(label: str, text: str, indent: str = "  ") -> Iterator[str]:
    """A label and what follows it, in as many lines as the terminal needs."""
    width = terminal_width() or DEFAULT_WIDTH
    first, *others = textwrap.wrap(label + text, width, subsequent_indent=indent)
    yield paint.bold(first[: len(label)]) + first[len(label) :]
    yield from others


def _reasons(found: list[Omission], last: int | None) -> Iterator[str]:
    """Why each edit left something out when it did; those that do not say are passed over."""
    by_edit: dict[str, list[Omission]] = {}
    for one in found:
        if one.why_now:
            by_edit.setdefault(one.by, []).append(one)
    edits = sorted(by_edit.values(), key=lambda edit: edit[0].since)
    shown = edits if last is None else edits[-EDITS_SHOWN:]
    if shown:
        yield "why at that time:"
    for edit in shown:
        total = OmissionTotal(len(edit), sum(one.tokens for one in edit))
        first = edit[0]
        what = f"{one_line(first.rule)}, {format_age(first.since)}, {_format_total(total)}"
        yield from _wrap("", f"  {what}: {one_line(first.why_now)}", indent="    ")
    if len(shown) < len(edits):
        yield paint.dim(f"  … {len(edits) - len(shown):,} earlier ones; --all shows them")


def _format_total(total: OmissionTotal | PlannedElisions) -> str:
    return f"{total.tokens:,} tokens" + (f" in {total.things:,}" if total.things > 1 else "")


def _describe_omission(report: ContextReport, one: Omission) -> str:
    entry = report.view.log.entries[report.view.log.at[one.entry]]
    if isinstance(entry.body, Compaction):
        gone = report.replaced
        messages = sum(item.place != "snapshot" for item in gone)
        return f"{pluralize(messages, 'message')} before it" if gone else "everything before it"
    assert isinstance(entry.body, Message)
    parts = [p for i, p in enumerate(entry.body.parts) if not one.parts or i in one.parts]
    text = _summarize(report, Message(role=entry.body.role, parts=tuple(parts)))
    return f"no provider accepts it: {text}" if one.rule == INVALID else text


def _planned(request: NextRequest) -> Iterator[str]:
    if request.planned:
        sums = (f"{rule} {_format_total(total)}" for rule, total in request.planned.items())
        yield from _wrap("the next request would leave out: ", ", ".join(sums))
    for rule, total in request.planned.items():
        files = list(total.of.items())
        if total.why_now:
            yield f"  {rule}, {one_line(total.why_now)}:"
        for what, tokens in files[:FILES_SHOWN]:
            yield f"  {tokens:>7,}  {rule}  {one_line(what)}"
        if len(files) > FILES_SHOWN:
            rest = sum(tokens for _, tokens in files[FILES_SHOWN:])
            yield f"  {rest:>7,}  {rule}  {pluralize(len(files) - FILES_SHOWN, 'other')}"
    if request.unidentified:
        yield paint.dim(f"{pluralize(request.unidentified, 'read')} that name no file would stay")


def _failed_attempt(view: View) -> Iterator[str]:
    attempt = view.attempt
    body = attempt.body if attempt is not None else None
    if attempt is not None and isinstance(body, Compaction) and body.status != "COMPRESSED":
        age, reason = format_age(attempt.time), one_line(with_handles(body.reason))
        yield paint(f"the last compaction, {age}, failed: {reason}", fg="yellow")


def _problems(view: View) -> Iterator[str]:
    if not view.problems:
        return
    yield paint(f"{pluralize(len(view.problems), 'edit')} without effect:", fg="yellow")
    for problem in view.problems[:PROBLEMS_SHOWN]:
        yield f"  {one_line(with_handles(problem))}"
    if len(view.problems) > PROBLEMS_SHOWN:
        yield paint.dim(f"  … {len(view.problems) - PROBLEMS_SHOWN:,} more; --json has them")
