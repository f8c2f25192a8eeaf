"""A proposed compaction: what would be replaced by which snapshot, and what it would save.

Nothing here calls a model or writes anything. A model's snapshot may be passed in; without one, or
when it is useless, code alone builds the snapshot, so a proposal can always be made. Success means
that the view ends below its target, not merely that it became smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import msgspec

from recollect.compaction.budget import (
    MAX_SNAPSHOT,
    MIN_SNAPSHOT,
    Budget,
    is_compaction_due,
)
from recollect.compaction.compaction_range import CompactionRange, locate_range
from recollect.compaction.cut_points import CutPoint, find_cut_points
from recollect.entries import (
    Compaction,
    CompactionTrigger,
    Entry,
    Message,
    Text,
    ToolCall,
    ToolResult,
)
from recollect.snapshot.snapshot_format import parse_snapshot
from recollect.view.entry_log import ACKNOWLEDGEMENT
from recollect.view.view import View, ViewItem
from recollect.view.view_state import pinned_by, with_partners

MIN_SAVING = 300  # tokens by which a cut has to make the view smaller to be worth it
ROUND_TIMEOUT = 1_800.0  # seconds for a model to write; on the user's own machine it reads slowly
OnRound: TypeAlias = Callable[[int, int], None]  # which request to it begins, of how many
LITTLE = 2_000  # tokens; a snapshot of little may take more than half of what it replaces


def ignore_round(_number: int, _count: int) -> None:
    """For callers that show no progress."""


class CompactionReport(msgspec.Struct, frozen=True):
    """What a compaction replaces, and what stays."""

    messages: int = 0
    calls: int = 0
    results: int = 0
    tokens: int = 0
    kept_messages: int = 0
    pins: int = 0
    snapshot_tokens: int = 0


class Proposal(msgspec.Struct, frozen=True):
    compaction: Compaction
    report: CompactionReport = CompactionReport()
    by_model: bool = False  # whether a model wrote the snapshot
    start: int = 0  # of the messages since the last compaction, the first that is replaced
    head: str | None = None  # of the view that it is for
    target: int = 0  # what the view may have afterwards

    @property
    def succeeded(self) -> bool:
        return self.compaction.status == "COMPRESSED"


def may_retry_model(view: View) -> bool:
    """Whether an automatic compaction may call a model: once in a prompt, whatever came of it. A
    further tool result does not make a model succeed that failed, so only the next prompt tries
    again. Read from the log, so that it holds across processes."""
    return view.state.attempt <= view.log.last_prompt(view.n)


def is_attempt_due(view: View, budget: Budget) -> bool:
    """Whether to compact before this request: over the threshold, and not yet in this prompt. After
    an attempt that failed another one is made, by code alone, when the view has grown by a tenth.
    """
    due = is_compaction_due(view, budget)
    if not due or may_retry_model(view):
        return due
    body = view.attempt.body if view.attempt is not None else None
    if not isinstance(body, Compaction) or body.status == "COMPRESSED":
        return False  # the window is the limit for the rest of the prompt
    return view.tokens * 10 > body.tokens_before * 11


class Partition(msgspec.Struct, frozen=True):
    """A view in two: what always stays, and what may be cut."""

    fixed: tuple[ViewItem, ...]  # what comes first, and what the last compaction kept
    items: tuple[ViewItem, ...]  # the messages since the last compaction, in order

    @staticmethod
    def of(view: View) -> Partition:
        fixed = tuple(i for i in view.items if i.place in ("first", "kept"))
        return Partition(fixed, tuple(i for i in view.items if i.place == "tail"))


class SnapshotInput(msgspec.Struct, frozen=True):
    """What goes into a snapshot besides the log: a model's reply and the user's instructions."""

    written: str = ""
    instructions: str = ""
    root: str = ""  # the project's folder


class ChosenCut(NamedTuple):
    point: CutPoint
    stays: list[ViewItem]
    fixed: int  # tokens of everything but the snapshot
    room: int  # tokens for the snapshot
    start: int = 0  # the first item that is replaced


def propose_compaction(
    view: View,
    budget: Budget,
    *,
    trigger: CompactionTrigger = "manual",
    words: SnapshotInput | None = None,
    part: CompactionRange | None = None,
) -> Proposal:
    """The best compaction of this view, or of a part that the user chose, or why there is none."""
    partition = Partition.of(view)
    choice = choose_cut(view, budget, partition, part)
    if choice is not None:
        return _build_proposal(view, partition, choice, budget, trigger, words or SnapshotInput())
    points = find_cut_points(partition.items)
    if part is not None:
        points = tuple(filter(None, (_range_cut(view, partition, part)[1],)))
    if view.tokens <= 0 or not points:
        return propose_nothing(view, trigger, "there is nothing that could be cut")
    if view.tokens <= budget.target:
        return propose_nothing(view, trigger, f"no cut would save {MIN_SAVING:,} tokens")
    least = min(points, key=lambda cut: cut.kept_tokens)
    after = _weigh_cut(view, partition, least, budget).fixed
    why = f"what has to stay takes {after:,} of {budget.target:,} tokens"
    return propose_nothing(view, trigger, why, after)


def choose_cut(
    view: View,
    budget: Budget,
    partition: Partition | None = None,
    part: CompactionRange | None = None,
) -> ChosenCut | None:
    """Where a compaction would cut: the first of the cut points that ends below the target, leaves
    the snapshot a fair share, and saves at least `MIN_SAVING` tokens.

    A view that is below its target already, as with a compaction by hand, is cut in the same way:
    at the newest 30 %, or at the next place that saves. Only above the target, where none of them
    saves that much, is it the place that replaces most. None: nothing is worth cutting, or what
    stays exceeds the target. Where the user chose a part, only that is looked at.
    """
    partition = partition or Partition.of(view)
    if part is not None:
        return _choose_range(view, budget, partition, part)
    points = find_cut_points(partition.items)
    staying = [item.tokens if item.stays else 0 for item in partition.items]
    at_least = list(accumulate([sum(item.tokens for item in partition.fixed), *staying]))
    least = {cut: at_least[cut.at] + cut.kept_tokens for cut in points}
    for fair in (budget.snapshot, budget.snapshot // 2, MIN_SNAPSHOT):
        for cut, stays in least.items():
            spared = view.tokens - stays - MIN_SNAPSHOT
            if stays + fair <= budget.target and spared >= MIN_SAVING:
                choice = _weigh_cut(view, partition, cut, budget)
                spared = view.tokens - choice.fixed - choice.room
                if choice.fixed + fair <= budget.target and spared >= MIN_SAVING:
                    return choice
    if not least or view.tokens <= budget.target:
        return None
    choice = _weigh_cut(view, partition, min(least, key=least.__getitem__), budget)
    return choice if choice.fixed + MIN_SNAPSHOT <= budget.target else None


def _choose_range(
    view: View, budget: Budget, partition: Partition, part: CompactionRange
) -> ChosenCut | None:
    start, cut = _range_cut(view, partition, part)
    if cut is None:
        return None
    choice = _weigh_cut(view, partition, cut, budget, start)
    spared = view.tokens - choice.fixed - choice.room
    fits = choice.fixed + MIN_SNAPSHOT <= budget.target
    return choice if fits and spared >= MIN_SAVING else None


def _range_cut(
    view: View, partition: Partition, part: CompactionRange
) -> tuple[int, CutPoint | None]:
    """Where the part begins, and where it is cut off; None: there is nothing in it."""
    items = partition.items
    start, end = locate_range(view, items, part)
    kept = sum(item.tokens for item in items[end:])
    return start, CutPoint(end, kept) if start < end else None


def _weigh_cut(
    view: View, partition: Partition, cut: CutPoint, budget: Budget, start: int = 0
) -> ChosenCut:
    """What stays besides: initial context and pins before the cut, with their calls and results.

    The snapshot gets half of what the target leaves, at least `budget.snapshot` where there is that
    much; and not more than half of what it replaces, or three quarters of little, and never so much
    that the cut would not save `MIN_SAVING`."""
    gone, at = partition.items[start : cut.at], view.log.at
    stay = with_partners(view.log, {at[item.entry.id] for item in gone if item.stays})
    stays = [*partition.fixed, *partition.items[:start]]
    stays += (item for item in gone if at[item.entry.id] in stay)
    acknowledged = view.log.counter.text(ACKNOWLEDGEMENT)
    fixed = sum(item.tokens for item in stays) + acknowledged + cut.kept_tokens
    left, replaced = budget.target - fixed, view.tokens - fixed
    room = min(left, max(budget.snapshot, min(MAX_SNAPSHOT, left // 2)))
    share = max(replaced // 2, min(replaced * 3 // 4, LITTLE))
    most = max(MIN_SNAPSHOT, min(share, replaced - MIN_SAVING))
    return ChosenCut(cut, stays, fixed, min(room, most), start)


def _build_proposal(
    view: View,
    partition: Partition,
    choice: ChosenCut,
    budget: Budget,
    trigger: CompactionTrigger,
    words: SnapshotInput,
) -> Proposal:
    (cut, stays, fixed, room, start), before, items = choice, view.tokens, partition.items
    gone = replaced_entries(view, partition, cut.at, start)
    snapshot = build_snapshot(view, gone, room, words)
    after = fixed + view.log.counter.text(snapshot)
    if after >= before or after > budget.target:
        return propose_nothing(view, trigger, f"{after:,} of {budget.target:,} tokens", after)
    body = Compaction(
        status="COMPRESSED",
        snapshot=snapshot,
        first_kept=items[cut.at].entry.id if cut.at < len(items) else None,
        kept=name_kept(view, [item.entry.id for item in stays]),
        tokens_before=before,
        tokens_after=after,
        trigger=trigger,
        reason=words.instructions,
    )
    report = _build_report(items, start, cut, stays, after - fixed)
    return Proposal(body, report, start=start, head=view.head, target=budget.target)


def name_kept(view: View, entries: Sequence[str]) -> tuple[str, ...]:
    """These messages, and after them the pins that hold them: all that the view after a compaction
    needs of what is before it."""
    at, state = view.log.at, view.state
    pins = {at[state.pins[entry]] for entry in entries if entry in state.pins}
    pins.update(p for p in state.first_pins if any(e in entries for e in pinned_by(view.log, p)))
    return (*entries, *(view.log.entries[p].id for p in sorted(pins)))


def propose_nothing(
    view: View, trigger: CompactionTrigger, why: str, after: int | None = None
) -> Proposal:
    """`after` is how many tokens would have remained, if a compaction was tried and failed."""
    body = Compaction(
        status="NOOP" if after is None else "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
        tokens_before=view.tokens,
        tokens_after=view.tokens if after is None else after,
        trigger=trigger,
        reason=why,
    )
    return Proposal(body)


def replaced_entries(view: View, partition: Partition, at: int, begin: int = 0) -> list[Entry]:
    """The entries that the snapshot stands for: the snapshot before it, and what is cut. Another
    program's summary is prose, so the entries it stands for are used too if the log has them."""
    log, items, held = view.log, partition.items, view.compaction
    end = log.at[items[at].entry.id] if at < len(items) else view.n
    body = held.body if held is not None else None
    prose = isinstance(body, Compaction) and parse_snapshot(body.snapshot) is None
    start = log.at[items[begin].entry.id] if begin else 0 if prose else view.state.base
    facts = [e for e in log.entries[start:end] if not isinstance(e.body, Compaction)]
    return [held, *facts] if held is not None else facts


def build_snapshot(view: View, gone: Sequence[Entry], room: int, words: SnapshotInput) -> str:
    """Within `room` tokens, from the log and a model's snapshot, if there is one."""
    # imported here: most commands compact nothing, and the snapshot package takes 30 ms to load
    from recollect.snapshot.snapshot_builder import build_snapshot_text

    if words.instructions:
        directive = Text(text=f"Keep when compacting: {words.instructions}")
        gone = [*gone, Entry("", None, 0, Message(role="user", parts=(directive,)))]
    written = parse_snapshot(words.written) if words.written else None
    count = view.log.counter.text
    return build_snapshot_text(gone, room, count, root=words.root, written=written)


def _build_report(
    items: Sequence[ViewItem],
    start: int,
    cut: CutPoint,
    stays: list[ViewItem],
    snapshot_tokens: int,
) -> CompactionReport:
    staying = {item.entry.id for item in stays}
    replaced = [item for item in items[start : cut.at] if item.entry.id not in staying]
    parts = [part for item in replaced for part in item.message.parts]
    return CompactionReport(
        messages=len(replaced),
        calls=sum(isinstance(part, ToolCall) for part in parts),
        results=sum(isinstance(part, ToolResult) for part in parts),
        tokens=sum(item.tokens for item in replaced),
        kept_messages=start + len(items) - cut.at,
        pins=sum(item.pinned and item.place != "first" for item in stays),
        snapshot_tokens=snapshot_tokens,
    )
