"""Compaction, with a snapshot that a model writes if there is one.

Code proposes a compaction first; only if that succeeds is the model called. It gets the instruction
as a system instruction and the messages that will be replaced as material, in as many rounds as its
window needs: each goes on from the snapshot of the round before. If it fails, answers nothing or
too slowly, or its snapshot does not fit, the proposal of code stands, with the reason; so
compaction always works, also offline. A proposal changes nothing until it is appended, so a
cancelled call loses nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import NamedTuple

import msgspec

from recollect.compaction.budget import Budget, is_compaction_due
from recollect.compaction.proposal import (
    CompactionReport,
    Partition,
    Proposal,
    SnapshotInput,
    build_snapshot,
    may_retry_model,
    propose_compaction,
    propose_nothing,
    replaced_entries,
)
from recollect.compaction.snapshot_material import (
    SnapshotRounds,
    WriterLimits,
    notes_room,
    plan_rounds,
)
from recollect.entries import Compaction, CompactionTrigger, Entry
from recollect.errors import ContextOverflow, UnknownModel
from recollect.models.model_calls import REPLY_SHARE, ModelCaller
from recollect.models.model_protocol import Model
from recollect.models.model_selection import CallModel
from recollect.models.open_model import open_model
from recollect.models.resolve import look_up_model
from recollect.profiles import find_profile
from recollect.provider_messages import latest_model
from recollect.settings import Settings, load_settings
from recollect.snapshot.snapshot_format import parse_snapshot, write_snapshot
from recollect.text import one_line
from recollect.view.view import View
from recollect.workspace.learned_windows import learned_window

ROUND_TIMEOUT = 1_800.0  # seconds; a model on the user's own machine reads slowly
MAX_ATTEMPTS = 3  # to send requests that fit
MAX_REASON = 300  # characters of an error


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
    """A compaction for the model that answered last, by the user's settings; `model` writes the
    snapshot, if there is one."""
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
        return await compact(view, budget, summarizer, instructions=instructions)


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
    timeout: float = ROUND_TIMEOUT,
) -> Proposal:
    """Propose a compaction; an automatic one does nothing below the threshold."""
    if trigger == "auto" and not is_compaction_due(view, budget):
        return propose_nothing(view, trigger, "the view is below its threshold")
    words = SnapshotInput("", instructions, root)
    by_code = propose_compaction(view, budget, trigger=trigger, words=words)
    may_call = trigger == "manual" or may_retry_model(view)
    if summarizer is None or not may_call or not by_code.succeeded:
        return _reject_empty(by_code)
    writer = _SnapshotWriter(view, budget, summarizer, words, timeout)
    written, trouble = await writer.write(by_code)
    if written:
        words = msgspec.structs.replace(words, written=written)
        by_model = propose_compaction(view, budget, trigger=trigger, words=words)
        if by_model.succeeded:
            return msgspec.structs.replace(by_model, by_model=True)
        trouble = f"what the model wrote did not fit ({by_model.compaction.reason})"
    return _reject_empty(_with_reason(by_code, f"built by code: {trouble}"))


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


class _SnapshotWriter(NamedTuple):
    """Lets a model write the snapshot of a compaction that code has proposed."""

    view: View
    budget: Budget
    summarizer: CallModel
    words: SnapshotInput
    timeout: float

    async def write(self, proposed: Proposal) -> tuple[str, str]:
        """The model's reply, or the reason why there is none."""
        limits, trouble = self._limits(), ""
        for _ in range(MAX_ATTEMPTS):
            rounds = self._plan(proposed, limits)
            if rounds is None:
                small = f"its window of {limits.window:,} tokens is too small"
                return "", f"the model was not called, because {small}"
            try:
                return await self._call(rounds)
            except ContextOverflow as overflow:  # it counts otherwise than we do
                trouble = f"the model failed (ContextOverflow: {overflow})"
                limits = _shrink_limits(limits, overflow)
            except Exception as error:  # noqa: BLE001 - compaction works without the model
                said = one_line(str(error), MAX_REASON)
                return "", f"the model failed ({type(error).__name__}: {said})"
        return "", trouble

    async def _call(self, rounds: SnapshotRounds) -> tuple[str, str]:
        reply, so_far = "", rounds.earlier
        for number in range(len(rounds.parts)):
            async with asyncio.timeout(self.timeout):
                reply = await self.summarizer(rounds.request(number, so_far), rounds.closing)
            reply = rounds.without_invented_handles(reply)
            snapshot = parse_snapshot(reply)
            if snapshot is None:
                wrote = "wrote no snapshot" if reply.strip() else "answered nothing"
                which = f" in round {number + 1} of {len(rounds.parts)}" if number else ""
                return "", f"the model {wrote}{which}"
            so_far = write_snapshot(snapshot)
        return reply, ""

    def _limits(self) -> WriterLimits:
        """The window of the model that writes; of a function, the session's."""
        caller = self.summarizer
        if isinstance(caller, ModelCaller):
            return WriterLimits(caller.window, caller.reply, caller.counter)
        window = self.budget.window
        return WriterLimits(window, window // REPLY_SHARE, self.view.log.counter)

    def _plan(self, proposed: Proposal, limits: WriterLimits) -> SnapshotRounds | None:
        view, partition = self.view, Partition.of(self.view)
        ids = [item.entry.id for item in partition.items]
        first_kept = proposed.compaction.first_kept
        at = ids.index(first_kept) if first_kept is not None else len(ids)
        held = view.compaction.body if view.compaction is not None else None
        notes, room = proposed.compaction.snapshot, notes_room(limits)
        if limits.counter.text(notes) > room:
            notes = build_snapshot(view, replaced_entries(view, partition, at), room, self.words)
        return plan_rounds(
            partition.items[:at],
            notes,
            held.snapshot if isinstance(held, Compaction) else "",
            limits,
            words=max(self.budget.snapshot, proposed.report.snapshot_tokens),
            keep=self.words.instructions,
        )


def _shrink_limits(limits: WriterLimits, overflow: ContextOverflow) -> WriterLimits:
    """What the provider said that it takes; else three fifths."""
    window, asked = overflow.limit or limits.window, overflow.asked
    if asked:  # in tokens as we count them
        window = limits.window * window * 9 // (asked * 10)
    window = min(window, limits.window * 3 // 5)
    return limits._replace(window=window, reply=min(limits.reply, window // REPLY_SHARE))
