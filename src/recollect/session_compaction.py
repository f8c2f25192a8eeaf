"""Compaction, with a snapshot that a model writes if there is one.

The summarizer gets one request, for the messages that will be replaced. If it fails, answers
nothing, or its snapshot does not fit, the snapshot that code builds is used alone; so compaction
always works, also offline. A proposal changes nothing until it is appended.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial

import msgspec

from recollect.compaction.budget import Budget, is_compaction_due
from recollect.compaction.cut_points import find_cut_points
from recollect.compaction.proposal import (
    CompactionReport,
    Partition,
    Proposal,
    SnapshotInput,
    may_retry_model,
    propose_compaction,
    propose_nothing,
)
from recollect.entries import Compaction, CompactionTrigger, Entry
from recollect.models.model_calls import call_model
from recollect.models.model_protocol import Model
from recollect.models.model_selection import CallModel
from recollect.models.open_model import open_model
from recollect.provider_messages import latest_model
from recollect.snapshot.snapshot_format import INSTRUCTION, parse_snapshot
from recollect.view.view import View


class CompactionResult(msgspec.Struct, frozen=True):
    """What `Session.compact` did, or would do; `print` shows it in a sentence."""

    compaction: Compaction
    report: CompactionReport
    entry: Entry | None = None  # none: a preview, or there was nothing to compact

    @property
    def succeeded(self) -> bool:
        return self.compaction.status == "COMPRESSED"

    @property
    def before(self) -> int:
        """Tokens that the model saw before."""
        return self.compaction.tokens_before

    @property
    def after(self) -> int:
        """Tokens that it sees afterwards, or would have if the compaction failed."""
        return self.compaction.tokens_after

    @property
    def snapshot(self) -> str:
        """The text that replaces the older messages."""
        return self.compaction.snapshot

    def __str__(self) -> str:
        if not self.succeeded:
            return f"not compacted: {self.compaction.reason}"
        verb = "compacted" if self.entry is not None else "would compact"
        return f"{verb} {self.report.messages:,} messages: {self.before:,} → {self.after:,} tokens"


async def propose_for_session(
    view: View, target: int | None, instructions: str, model: str | Model | None
) -> Proposal:
    """A compaction for the model that answered last; `model` writes the snapshot, if there is
    one."""
    async with AsyncExitStack() as stack:
        called = model
        if isinstance(called, str):
            called = await stack.enter_async_context(open_model(called))
        summarizer = partial(call_model, called) if called is not None else None
        name = latest_model(view.entries) or (called.name if called is not None else "")
        budget = Budget.of(name, target=target)
        return await compact(view, budget, summarizer, instructions=instructions)


async def compact(
    view: View,
    budget: Budget,
    summarizer: CallModel | None = None,
    *,
    trigger: CompactionTrigger = "manual",
    instructions: str = "",
    root: str = "",
) -> Proposal:
    """Propose a compaction; an automatic one does nothing below the threshold."""
    if trigger == "auto" and not is_compaction_due(view, budget):
        return propose_nothing(view, trigger, "the view is below its threshold")
    written, trouble = "", ""
    if summarizer is not None and (trigger == "manual" or may_retry_model(view)):
        written, trouble = await _write_snapshot(view, summarizer, instructions)
    given = SnapshotInput(written, instructions, root)
    proposal = propose_compaction(view, budget, trigger=trigger, words=given)
    if written and not proposal.succeeded:
        trouble = f"what the model wrote did not fit ({proposal.compaction.reason})"
        given = SnapshotInput("", instructions, root)
        proposal = propose_compaction(view, budget, trigger=trigger, words=given)
    if not trouble:
        return msgspec.structs.replace(proposal, by_model=bool(written))
    reason = "; ".join(filter(None, (proposal.compaction.reason, f"built by code: {trouble}")))
    compaction = msgspec.structs.replace(proposal.compaction, reason=reason)
    return msgspec.structs.replace(proposal, compaction=compaction)


async def _write_snapshot(view: View, summarizer: CallModel, instructions: str) -> tuple[str, str]:
    """The model's snapshot, or the reason why there is none."""
    items = Partition.of(view).items
    cuts = find_cut_points(items)
    if not cuts:
        return "", ""
    earlier = [item.message for item in view.items if item.place == "snapshot"]
    replaced = [*earlier, *(item.message for item in items[: cuts[0].at])]
    prompt = f"{INSTRUCTION}\nKeep in particular: {instructions}" if instructions else INSTRUCTION
    try:
        text = await summarizer(replaced, prompt)
    except Exception as error:  # noqa: BLE001 - compaction works without the model
        return "", f"the model failed ({type(error).__name__}: {error})"
    if parse_snapshot(text) is None:
        return "", "the model wrote no snapshot" if text.strip() else "the model answered nothing"
    return text, ""
