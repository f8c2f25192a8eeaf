"""Lets a model write a snapshot, in as many rounds as its window needs.

Every request fits: when the provider counts otherwise than we do, the rounds are planned again for
what it takes. A model that fails, answers nothing or takes too long leaves a reason, never an
exception, because a snapshot can always be built without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from recollect.compaction.proposal import (
    Partition,
    SnapshotInput,
    build_snapshot,
    replaced_entries,
)
from recollect.compaction.snapshot_material import (
    SnapshotRounds,
    WriterLimits,
    notes_room,
    plan_rounds,
)
from recollect.compaction.snapshot_reply import parse_reply
from recollect.entries import Compaction
from recollect.errors import ContextOverflow
from recollect.models.model_calls import REPLY_SHARE, ModelCaller
from recollect.models.model_selection import CallModel
from recollect.snapshot.snapshot_format import write_snapshot
from recollect.text import one_line
from recollect.view.view import View

ROUND_TIMEOUT = 1_800.0  # seconds; a model on the user's own machine reads slowly
MAX_ATTEMPTS = 3  # to send requests that fit
MAX_REASON = 300  # characters of an error

OnRound = Callable[[int, int], None]  # which round begins, and how many there are


def ignore_round(_number: int, _count: int) -> None:
    """For callers that show no progress."""


class SnapshotMaterial(NamedTuple):
    """What a model gets to write the snapshot for the messages before `at`."""

    view: View
    partition: Partition
    at: int
    notes: str  # the snapshot that code built
    words: SnapshotInput
    tokens: int  # that the snapshot may have

    def plan(self, limits: WriterLimits) -> SnapshotRounds | None:
        held = self.view.compaction.body if self.view.compaction is not None else None
        notes, room = self.notes, notes_room(limits)
        if limits.counter.text(notes) > room:
            gone = replaced_entries(self.view, self.partition, self.at)
            notes = build_snapshot(self.view, gone, room, self.words)
        return plan_rounds(
            self.partition.items[: self.at],
            notes,
            held.snapshot if isinstance(held, Compaction) else "",
            limits,
            words=self.tokens,
            keep=self.words.instructions,
        )


class SnapshotWriter(NamedTuple):
    """Calls the model once for each round, and anew in smaller ones when they were too large."""

    summarizer: CallModel
    material: SnapshotMaterial
    window: int  # of the session's model, for a summarizer that is a function and has none
    on_round: OnRound = ignore_round
    timeout: float = ROUND_TIMEOUT

    async def write(self) -> tuple[str, str]:
        """The snapshot that the model wrote, or the reason why there is none."""
        limits, trouble = self._limits(), ""
        for _ in range(MAX_ATTEMPTS):
            rounds = self.material.plan(limits)
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
        so_far, count = rounds.earlier, len(rounds.parts)
        for number in range(count):
            self.on_round(number + 1, count)
            async with asyncio.timeout(self.timeout):
                reply = await self.summarizer(rounds.request(number, so_far), rounds.closing)
            reply = rounds.without_invented_handles(reply)
            snapshot = parse_reply(reply)
            if snapshot is None:
                wrote = "wrote no snapshot" if reply.strip() else "answered nothing"
                which = f" in round {number + 1} of {count}" if number else ""
                return "", f"the model {wrote}{which}"
            so_far = write_snapshot(snapshot)
        return so_far, ""

    def _limits(self) -> WriterLimits:
        caller = self.summarizer
        if isinstance(caller, ModelCaller):
            return WriterLimits(caller.window, caller.reply, caller.counter)
        counter = self.material.view.log.counter
        return WriterLimits(self.window, self.window // REPLY_SHARE, counter)


def _shrink_limits(limits: WriterLimits, overflow: ContextOverflow) -> WriterLimits:
    """What the provider said that it takes; else three fifths."""
    window, asked = overflow.limit or limits.window, overflow.asked
    if asked:  # in tokens as we count them
        window = limits.window * window * 9 // (asked * 10)
    window = min(window, limits.window * 3 // 5)
    return limits._replace(window=window, reply=min(limits.reply, window // REPLY_SHARE))
