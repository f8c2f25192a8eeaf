"""Compaction, with a snapshot that a model writes if there is one.

Code proposes a compaction first; only if that succeeds is the model called. It gets the instruction
as a system instruction and the messages that will be replaced as material, in as many rounds as its
window needs: each goes on from the snapshot of the round before. If it fails, answers nothing or
too slowly, or its snapshot does not fit, the proposal of code stands, with the reason; so
compaction always works, also offline. A proposal changes nothing until it is appended, so a
cancelled call loses nothing.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress

import msgspec

from recollect.compaction.budget import Budget, is_compaction_due
from recollect.compaction.compaction_range import CompactionRange
from recollect.compaction.proposal import (
    ROUND_TIMEOUT,
    CompactionReport,
    OnRound,
    Proposal,
    SnapshotInput,
    ignore_round,
    may_retry_model,
    propose_compaction,
    propose_nothing,
)
from recollect.entries import Compaction, CompactionTrigger, Entry
from recollect.errors import UnknownModel
from recollect.models.model_calls import ModelCaller
from recollect.models.model_protocol import Model
from recollect.models.model_selection import CallModel
from recollect.models.open_model import open_model
from recollect.models.resolve import look_up_model
from recollect.profiles import find_profile
from recollect.provider_messages import latest_model
from recollect.settings import Settings, load_settings
from recollect.snapshot.snapshot_format import parse_snapshot
from recollect.view.edit_reasons import BUILT_BY_CODE
from recollect.view.view import View
from recollect.workspace.learned_windows import learned_window


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
    view: View,
    target: int | None,
    instructions: str,
    model: str | Model | None,
    part: CompactionRange | None = None,
) -> Proposal:
    """A compaction for the model that answered last, by the user's settings; `model` writes the
    snapshot, if there is one. Of a part that the user chose, whatever makes it smaller counts."""
    settings = load_settings()
    async with AsyncExitStack() as stack:
        called = model
        if isinstance(called, str):
            called = await stack.enter_async_context(open_model(called, settings))
        summarizer = ModelCaller.of(called) if called is not None else None
        name = latest_model(view.entries) or (called.name if called is not None else "")
        budget = _budget_of(name, settings)
        if target is not None:
            budget = budget.with_target(target)
        elif part is not None:
            budget = budget.allowing(view.tokens)
        return await compact(view, budget, summarizer, instructions=instructions, part=part)


def _budget_of(name: str, settings: Settings) -> Budget:
    profile = find_profile(name)
    with suppress(UnknownModel):  # of a session that was made elsewhere
        profile = look_up_model(name, settings).profile if name else profile
    return Budget.from_settings(profile, settings.context, learned_window(name))


async def compact(
    view: View,
    budget: Budget,
    summarizer: CallModel | None = None,
    *,
    trigger: CompactionTrigger = "manual",
    instructions: str = "",
    root: str = "",
    on_round: OnRound = ignore_round,
    timeout: float = ROUND_TIMEOUT,
    part: CompactionRange | None = None,
) -> Proposal:
    """Propose a compaction; an automatic one does nothing below the threshold."""
    if trigger == "auto" and not is_compaction_due(view, budget):
        return propose_nothing(view, trigger, "the view is below its threshold")
    words = SnapshotInput("", instructions, root)
    by_code = propose_compaction(view, budget, trigger=trigger, words=words, part=part)
    may_call = trigger == "manual" or may_retry_model(view)
    if summarizer is None or not may_call or not by_code.succeeded:
        return _reject_empty(by_code)
    # late: most sessions are never compacted by a model, and the writer takes 10 ms to load
    from recollect.snapshot_writer import SnapshotMaterial, SnapshotWriter

    material = SnapshotMaterial.of(view, budget, by_code, words)
    writer = SnapshotWriter(summarizer, material, budget.window, on_round, timeout)
    written, trouble = await writer.write()
    if written:
        words = msgspec.structs.replace(words, written=written)
        by_model = propose_compaction(view, budget, trigger=trigger, words=words, part=part)
        if by_model.succeeded:
            return msgspec.structs.replace(_with_reason(by_model, trouble), by_model=True)
        trouble = f"what the model wrote did not fit ({by_model.compaction.reason})"
    return _reject_empty(_with_reason(by_code, f"{BUILT_BY_CODE}{trouble}"))


def _with_reason(proposal: Proposal, reason: str, **changes: str) -> Proposal:
    reason = "; ".join(filter(None, (proposal.compaction.reason, reason)))
    compaction = msgspec.structs.replace(proposal.compaction, reason=reason, **changes)
    return msgspec.structs.replace(proposal, compaction=compaction)


def _reject_empty(proposal: Proposal) -> Proposal:
    """A snapshot that says nothing is none: everything stays as it is."""
    if not proposal.succeeded or parse_snapshot(proposal.compaction.snapshot) is not None:
        return proposal
    empty = "the snapshot would be empty"
    return _with_reason(proposal, empty, status="COMPRESSION_FAILED_EMPTY_SUMMARY", snapshot="")
