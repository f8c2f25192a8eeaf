"""What a session has used, counted from its entries: tokens and cost by model, time, tools,
compactions, and what the rules leave out now."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from recollect.agent.subagents import read_subagent_usage
from recollect.display.display_text import align_table, format_cost, one_line, pluralize
from recollect.entries import Compaction, Entry, Message, Restore, Text, ToolResult, Usage
from recollect.errors import RecollectError
from recollect.models.resolve import look_up_model
from recollect.profiles import compute_cost
from recollect.settings import Settings
from recollect.tokens import add_usage
from recollect.view.omissions import OmissionTotal, find_omissions, total_by_rule
from recollect.view.view import View


class ToolTotals(msgspec.Struct, frozen=True):
    """How often a tool was called."""

    calls: int
    failures: int
    seconds: float


class ModelTotals(msgspec.Struct, frozen=True):
    """What a model's replies used."""

    replies: int
    usage: Usage
    reports_cache: bool


class SessionStats(msgspec.Struct, frozen=True):
    prompts: int
    models: dict[str, ModelTotals]
    tools: dict[str, ToolTotals]
    subagents: Usage  # of all of them
    seconds: float  # of work: from each prompt to the last entry that it led to
    compactions: int  # in force or replaced by a later one
    undone: int
    omitted: dict[str, OmissionTotal]  # by rule


def count_session(entries: Sequence[Entry], view: View) -> SessionStats:
    """Of the entries of a path, and what the view of its end leaves out."""
    models: dict[str, ModelTotals] = {}
    calls: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    seconds: defaultdict[str, float] = defaultdict(float)
    subagents = Usage()
    for message in (entry.body for entry in entries):
        if not isinstance(message, Message):
            continue
        if message.role == "model":
            models[message.model] = _add_reply(models.get(message.model), message)
        for part in message.parts:
            if isinstance(part, ToolResult):
                calls[part.name] += 1
                failures[part.name] += part.is_error
                seconds[part.name] += part.duration or 0.0
                subagents = add_usage(subagents, read_subagent_usage(part))
    compactions = {
        entry.id
        for entry in entries
        if isinstance(entry.body, Compaction) and entry.body.status == "COMPRESSED"
    }
    restored = {
        one for entry in entries if isinstance(entry.body, Restore) for one in entry.body.entries
    }
    return SessionStats(
        prompts=sum(map(_is_prompt, entries)),
        models=models,
        tools={name: ToolTotals(calls[name], failures[name], seconds[name]) for name in calls},
        subagents=subagents,
        seconds=_worked(entries),
        compactions=len(compactions - restored),
        undone=len(compactions & restored),
        omitted=total_by_rule(find_omissions(view)),
    )


def stats_lines(stats: SessionStats, settings: Settings, width: int) -> Iterator[str]:
    replies = sum(use.replies for use in stats.models.values())
    took = _format_seconds(stats.seconds)
    yield f"{pluralize(stats.prompts, 'prompt')}, {pluralize(replies, 'turn')}, {took} of work"
    yield from _model_lines(stats, settings, width)
    if stats.subagents.input or stats.subagents.output:
        used = stats.subagents
        yield f"sub-agents: {used.input:,} tokens in, {used.output:,} out"
    yield from _tool_lines(stats, width)
    if stats.compactions or stats.undone:
        undone = f", {stats.undone} undone" if stats.undone else ""
        yield f"compactions: {stats.compactions}{undone}"
    for rule, total in stats.omitted.items():
        left = f"{pluralize(total.things, 'item')}, {total.tokens:,} tokens"
        yield f"left out by {one_line(rule)}: {left}"


def _model_lines(stats: SessionStats, settings: Settings, width: int) -> Iterator[str]:
    if not stats.models:
        return
    rows = [["MODEL", "TURNS", "IN", "CACHED", "OUT", "COST"]]
    total, known = 0.0, True
    for name, use in stats.models.items():
        cost = _cost(name, use.usage, settings)
        total, known = total + (cost or 0.0), known and cost is not None
        cached = f"{use.usage.cached or 0:,}" if use.reports_cache else "-"
        counts = (f"{use.usage.input:,}", cached, f"{use.usage.output:,}")
        cells = one_line(name) or "(not named)", f"{use.replies:,}", *counts
        rows.append([*cells, format_cost(cost) or "unknown"])
    yield ""
    for row in align_table(rows, width=width, stretch=0, numbers=(1, 2, 3, 4, 5)):
        yield "  ".join(row).rstrip()
    if len(stats.models) > 1:
        yield f"together {format_cost(total) or '$0'}" + ("" if known else ", without the unknown")
    yield ""


def _tool_lines(stats: SessionStats, width: int) -> Iterator[str]:
    if not stats.tools:
        return
    rows = [["TOOL", "CALLS", "FAILED", "TIME"]]
    for name, use in sorted(stats.tools.items(), key=lambda each: -each[1].calls):
        took = _format_seconds(use.seconds)
        rows.append([one_line(name), f"{use.calls:,}", f"{use.failures:,}", took])
    for row in align_table(rows, width=width, stretch=0, numbers=(1, 2, 3)):
        yield "  ".join(row).rstrip()
    yield ""


def _add_reply(known: ModelTotals | None, message: Message) -> ModelTotals:
    known = known or ModelTotals(0, Usage(), reports_cache=False)
    reports = message.usage is not None and message.usage.cached is not None
    return ModelTotals(
        known.replies + 1, add_usage(known.usage, message.usage), known.reports_cache or reports
    )


def _cost(model: str, usage: Usage, settings: Settings) -> float | None:
    try:
        return compute_cost(usage, look_up_model(model, settings).profile.price)
    except RecollectError:  # nobody knows it
        return None


def _is_prompt(entry: Entry) -> bool:
    body = entry.body
    return (
        isinstance(body, Message)
        and body.role == "user"
        and not body.context
        and any(isinstance(part, Text) for part in body.parts)
    )


def _worked(entries: Iterable[Entry]) -> float:
    """In the time between two prompts the user reads; only what follows a prompt is work."""
    total, began, last = 0, None, 0
    for entry in entries:
        if _is_prompt(entry):
            total += last - began if began is not None else 0
            began = entry.time
        if isinstance(entry.body, Message):
            last = max(entry.time, began or 0)
    return (total + (last - began if began is not None else 0)) / 1_000


def _format_seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,} min {rest} s"
