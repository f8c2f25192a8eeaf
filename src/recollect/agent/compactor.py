"""Compaction with a model's help, when there is one.

The model is an argument. It is asked once, for the part that will be replaced; if it fails, answers
nothing, or its words would not fit, the snapshot that code builds is used alone. So compacting
always works, also offline, and a model that is down costs nothing but its prose.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import msgspec

from recollect.compaction.budget import Budget, is_compaction_due
from recollect.compaction.cut_points import find_cut_points
from recollect.compaction.proposal import (
    Partition,
    Proposal,
    SnapshotInput,
    may_retry_model,
    propose_compaction,
    propose_nothing,
)
from recollect.entries import CompactionTrigger, Message
from recollect.view.view import View

Summarizer: TypeAlias = Callable[[Sequence[Message], str], Awaitable[str]]


async def compact(
    view: View,
    budget: Budget,
    ask: Summarizer | None = None,
    *,
    trigger: CompactionTrigger = "manual",
    instructions: str = "",
    root: str = "",
) -> Proposal:
    """What to append. An automatic compaction does nothing below the threshold."""
    if trigger == "auto" and not is_compaction_due(view, budget):
        return propose_nothing(view, trigger, "the view is below its threshold")
    written, trouble = "", ""
    if ask is not None and (trigger == "manual" or may_retry_model(view)):
        written, trouble = await _write_snapshot(view, ask, instructions)
    words = SnapshotInput(written, instructions, root)
    made = propose_compaction(view, budget, trigger=trigger, words=words)
    if written and not made.succeeded:
        trouble = f"what the model wrote did not fit ({made.compaction.reason})"
        words = SnapshotInput("", instructions, root)
        made = propose_compaction(view, budget, trigger=trigger, words=words)
    if not trouble:
        return made
    reason = "; ".join(filter(None, (made.compaction.reason, f"built by code: {trouble}")))
    return msgspec.structs.replace(
        made, compaction=msgspec.structs.replace(made.compaction, reason=reason)
    )


async def _write_snapshot(view: View, ask: Summarizer, instructions: str) -> tuple[str, str]:
    """A model's snapshot, or why there is none."""
    from recollect.snapshot.snapshot_format import INSTRUCTION, parse_snapshot

    items = Partition.of(view).items
    places = find_cut_points(items)
    if not places:
        return "", ""
    earlier = [item.message for item in view.items if item.place == "snapshot"]
    asked = [*earlier, *(item.message for item in items[: places[0].at])]
    prompt = f"{INSTRUCTION}\nKeep in particular: {instructions}" if instructions else INSTRUCTION
    try:
        text = await ask(asked, prompt)
    except Exception as error:  # noqa: BLE001 - whatever a model does wrong, we go on without it
        return "", f"the model failed ({type(error).__name__}: {error})"
    if parse_snapshot(text) is None:
        return "", "the model wrote no snapshot" if text.strip() else "the model answered nothing"
    return text, ""
