"""What `recollect context` knows, as JSON documents for programs: whole, nothing shortened away.

Texts of messages are given as summaries; `recollect show ID --curated --json` has them in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from recollect.cli.context_text import item_label, list_omissions, planned_files, planned_sums
from recollect.cli.entry_display import summarize
from recollect.profiles import is_known_model
from recollect.view.omissions import count_by_category, items_replaced
from recollect.view.view import ViewItem

if TYPE_CHECKING:
    from recollect.cli.context_diff import ContextDiff
    from recollect.cli.context_report import ContextReport
    from recollect.view.elision_rules import ElisionPlan


def context_document(sight: ContextReport, plan: ElisionPlan | None) -> dict[str, Any]:
    view, profile = sight.view, sight.profile
    return {
        "session": msgspec.to_builtins(sight.session),
        "at": sight.asked.id if sight.asked is not None else view.head,
        "model": sight.model,
        "model_is_known": is_known_model(sight.model),
        "exact": view.log.counter.exact,
        "tokens": view.tokens,
        "window": profile.window,
        "threshold": profile.threshold,
        "share": view.tokens / profile.window,
        "categories": count_by_category(view),
        "last_request": _last_request(sight),
        "items": [_item(item) for item in view.items],
        "left_out": [msgspec.to_builtins(one) for one in list_omissions(sight)],
        "compaction": _compaction(sight),
        "would_be_left_out": {
            rule: {
                "things": found.things,
                "tokens": found.tokens,
                "of": planned_files(plan, rule),
            }
            for rule, found in planned_sums(plan).items()
        }
        if plan is not None
        else {},
        "problems": list(view.problems),
    }


def _last_request(sight: ContextReport) -> dict[str, Any] | None:
    if sight.cost is None:
        return None
    entry, usage, estimate = sight.cost
    counts = ("input", "cached", "output", "thoughts", "total")
    told = {name: getattr(usage, name) for name in counts}
    return {"entry": entry.id, "time": entry.time, **told, "our_count": estimate}


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


def _compaction(sight: ContextReport) -> dict[str, Any] | None:
    entry = sight.view.compaction
    if entry is None:
        return None
    gone = items_replaced(sight.before, sight.view) if sight.before is not None else ()
    return {
        "entry": entry.id,
        "time": entry.time,
        "messages": sum(item.place != "snapshot" for item in gone),
        "tokens": sum(item.tokens for item in gone),
    }


def diff_document(compared: ContextDiff) -> dict[str, Any]:
    old, new, found = compared.old, compared.new, compared.difference
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


def _entry_id(sight: ContextReport) -> str | None:
    return sight.asked.id if sight.asked is not None else sight.view.head
