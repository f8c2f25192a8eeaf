"""Context reports and differences as JSON documents, with nothing shortened away.

Messages appear as summaries; `recollect show ID --curated --json` has their full text.
"""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.cli.context_diff import ContextDiff
from recollect.cli.context_report import ContextReport
from recollect.cli.context_text import item_label, plan_by_file, total_planned
from recollect.cli.entry_display import summarize
from recollect.profiles import is_known_model
from recollect.view.elision_rules import ElisionPlan
from recollect.view.omissions import count_by_category
from recollect.view.view import ViewItem


def context_document(report: ContextReport, plan: ElisionPlan | None) -> dict[str, Any]:
    view, profile = report.view, report.profile
    return {
        "session": msgspec.to_builtins(report.session),
        "at": _entry_id(report),
        "model": report.model,
        "model_is_known": is_known_model(report.model),
        "exact": view.log.counter.exact,
        "tokens": view.tokens,
        "window": profile.window,
        "threshold": profile.threshold,
        "share": view.tokens / profile.window,
        "categories": count_by_category(view),
        "last_request": _last_request(report),
        "items": [_item(item) for item in view.items],
        "left_out": [msgspec.to_builtins(one) for one in report.omissions],
        "compaction": _compaction(report),
        "would_be_left_out": _planned(plan) if plan is not None else {},
        "problems": list(view.problems),
    }


def _last_request(report: ContextReport) -> dict[str, Any] | None:
    if report.last_request is None:
        return None
    reply, usage, our_count = report.last_request
    names = ("input", "cached", "output", "thoughts", "total")
    counts = {name: getattr(usage, name) for name in names}
    return {"entry": reply.id, "time": reply.time, **counts, "our_count": our_count}


def _planned(plan: ElisionPlan) -> dict[str, Any]:
    return {
        rule: {"things": total.things, "tokens": total.tokens, "of": plan_by_file(plan, rule)}
        for rule, total in total_planned(plan).items()
    }


def _item(item: ViewItem) -> dict[str, Any]:
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


def _compaction(report: ContextReport) -> dict[str, Any] | None:
    entry = report.view.compaction
    if entry is None:
        return None
    gone = report.replaced
    return {
        "entry": entry.id,
        "time": entry.time,
        "messages": sum(item.place != "snapshot" for item in gone),
        "tokens": sum(item.tokens for item in gone),
    }


def diff_document(diff: ContextDiff) -> dict[str, Any]:
    old, new, found = diff
    return {
        "session": msgspec.to_builtins(new.session),
        "model": new.model,
        "from": {"at": _entry_id(old), "tokens": old.view.tokens},
        "to": {"at": _entry_id(new), "tokens": new.view.tokens},
        "tokens": found.tokens,
        "appeared": [_item(item) for item in found.appeared],
        "gone": [_item(one.item) | {"why": one.why} for one in found.gone],
        "changed": [
            _item(change.after) | {"tokens_before": change.before.tokens}
            for change in found.changed
        ],
    }


def _entry_id(report: ContextReport) -> str | None:
    return report.at.id if report.at is not None else report.view.head
