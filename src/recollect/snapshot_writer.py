"""Lets a model write a snapshot, in as many rounds as its window needs.

Every request fits: when the provider refuses one as too long, the rounds are planned again, with
requests that are smaller than that one and fit the window it named. No request is sent twice. A
model that fails, answers nothing or takes too long leaves a reason, never an exception, because a
snapshot can always be built without it.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from recollect.compaction.budget import Budget
from recollect.compaction.proposal import (
    ROUND_TIMEOUT,
    OnRound,
    Partition,
    Proposal,
    SnapshotInput,
    build_snapshot,
    ignore_round,
    replaced_entries,
)
from recollect.compaction.snapshot_material import (
    FILL_LIMIT,
    SnapshotRounds,
    WriterLimits,
    notes_room,
    plan_rounds,
)
from recollect.compaction.snapshot_reply import parse_reply
from recollect.entries import Compaction, Message
from recollect.errors import ContextOverflow
from recollect.models.model_calls import REPLY_SHARE, ModelCaller
from recollect.models.model_selection import CallModel
from recollect.snapshot.snapshot_format import write_snapshot
from recollect.text import one_line
from recollect.view.view import View

MAX_ATTEMPTS = 3  # to send requests that fit
MAX_REASON = 300  # characters of an error


class SnapshotMaterial(NamedTuple):
    """What a model gets to write the snapshot for the messages from `start` to before `at`."""

    view: View
    partition: Partition
    at: int
    notes: str  # the snapshot that code built
    words: SnapshotInput
    tokens: int  # that the snapshot may have
    start: int = 0  # of the messages, the first that is replaced

    @staticmethod
    def of(
        view: View, budget: Budget, proposed: Proposal, words: SnapshotInput
    ) -> SnapshotMaterial:
        """For the messages that a proposal of code replaces."""
        partition, body = Partition.of(view), proposed.compaction
        ids = [item.entry.id for item in partition.items]
        at = ids.index(body.first_kept) if body.first_kept is not None else len(ids)
        tokens = max(budget.snapshot, proposed.report.snapshot_tokens)
        notes = body.snapshot
        return SnapshotMaterial(view, partition, at, notes, words, tokens, proposed.start)

    def plan(self, limits: WriterLimits) -> SnapshotRounds | None:
        held = self.view.compaction.body if self.view.compaction is not None else None
        notes, room = self.notes, notes_room(limits)
        if limits.counter.text(notes) > room:
            gone = replaced_entries(self.view, self.partition, self.at, self.start)
            notes = build_snapshot(self.view, gone, room, self.words)
        return plan_rounds(
            self.partition.items[self.start : self.at],
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
        """The snapshot that the model wrote, and what went wrong: without a snapshot, why there is
        none."""
        limits, trouble = self._limits(), ""
        sent: dict[tuple[Message, ...], str] = {}
        for _ in range(MAX_ATTEMPTS):
            rounds = self.material.plan(limits)
            if rounds is None:
                small = f"its window of {limits.window:,} tokens is too small"
                return "", trouble or f"the model was not called, because {small}"
            try:
                return await self._call(rounds, sent)
            except ContextOverflow as overflow:  # without the remedy, which is this compaction
                said = one_line(overflow.said, MAX_REASON)
                trouble = f"the model failed (ContextOverflow: {said})"
                refused = sum(map(limits.counter.message, next(reversed(sent))))
                limits = _shrink_limits(limits, refused, overflow)
            except Exception as error:  # noqa: BLE001 - compaction works without the model
                said = one_line(str(error), MAX_REASON)
                return "", f"the model failed ({type(error).__name__}: {said})"
        return "", trouble

    async def _call(
        self, rounds: SnapshotRounds, sent: dict[tuple[Message, ...], str]
    ) -> tuple[str, str]:
        """`sent` has all requests so far with their replies, the newest last.

        A model that wrote a snapshot may miss the next round: code's notes have its messages, and
        the round after it goes on from that snapshot. Not the last one, or what it wrote would be
        outdated."""
        so_far, count, missed, trouble = rounds.earlier, len(rounds.parts), -2, ""
        for number in range(count):
            self.on_round(number + 1, count)
            request = rounds.request(number, so_far)
            if request not in sent:
                sent[request] = ""
                sent[request] = await self._send(rounds, request)
            reply = rounds.without_invented_handles(sent[request])
            snapshot = parse_reply(reply)
            if snapshot is None:
                wrote = "wrote no snapshot" if reply.strip() else "answered nothing"
                which = f" in round {number + 1} of {count}" if number else ""
                trouble = f"the model {wrote}{which}"
                if number in (0, count - 1, missed + 1):
                    return "", trouble
                missed = number
                continue
            so_far = write_snapshot(snapshot)
        return so_far, trouble

    async def _send(self, rounds: SnapshotRounds, request: tuple[Message, ...]) -> str:
        caller = self.summarizer
        if isinstance(caller, ModelCaller):
            caller = caller.within(rounds.limits.window)
        async with asyncio.timeout(self.timeout):
            return await caller(request, rounds.closing)

    def _limits(self) -> WriterLimits:
        caller = self.summarizer
        if isinstance(caller, ModelCaller):
            return WriterLimits(caller.window, caller.reply, caller.counter)
        counter = self.material.view.log.counter
        return WriterLimits(self.window, self.window // REPLY_SHARE, counter)


def _shrink_limits(limits: WriterLimits, refused: int, overflow: ContextOverflow) -> WriterLimits:
    """The window that the provider named; and in any case less than the request that it refused,
    of this many tokens as we count them."""
    window = min(limits.window, overflow.limit or limits.window)
    if overflow.limit is not None and overflow.asked:
        window = min(window, overflow.limit * refused // overflow.asked)
    fits = refused * (9 if window < limits.window else 6) // 10
    # a request has what the reply leaves of the window: all that it may have, or its share
    most = min((fits + limits.reply) / FILL_LIMIT, fits / (FILL_LIMIT - 1 / REPLY_SHARE))
    window = min(window, int(most))
    return limits._replace(window=window, reply=min(limits.reply, window // REPLY_SHARE))
