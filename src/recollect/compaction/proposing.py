"""A compaction, proposed: what would be replaced by which snapshot, and what it would save.

Nothing here asks a model or writes anything. What a model wrote may be handed in; without it, or
when it is of no use, the snapshot is built by code alone, so a proposal can always be made. Success
means that the view ends below its target, not merely that it became smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.compaction.budget import MIN_SNAPSHOT, Budget
from recollect.compaction.splitting import Cut, cuts
from recollect.entries import Compaction, CompactionStatus, Entry, Message, Text, ToolCall
from recollect.view.log import ACKNOWLEDGEMENT
from recollect.view.state import partners
from recollect.view.view import Item, View

Trigger: TypeAlias = Literal["manual", "auto", "overflow", "import"]


class Report(msgspec.Struct, frozen=True):
    """What a compaction took away, and what stays."""

    messages: int = 0
    calls: int = 0
    results: int = 0
    tokens: int = 0
    kept_messages: int = 0
    pins: int = 0
    snapshot_tokens: int = 0


class Proposal(msgspec.Struct, frozen=True):
    compaction: Compaction
    report: Report = Report()

    @property
    def works(self) -> bool:
        return self.compaction.status == "COMPRESSED"


def may_ask_again(view: View) -> bool:
    """After an attempt that failed, a model is not asked again until something was said."""
    attempt = view.attempt
    if attempt is None or not isinstance(attempt.body, Compaction):
        return True
    failed = attempt.body.status not in ("COMPRESSED", "NOOP")
    return not failed or view.state.last > view.state.attempt


class Pieces(msgspec.Struct, frozen=True):
    """A view taken apart: what always stays, and what may be cut."""

    fixed: tuple[Item, ...]  # initial context and pins, wherever they are
    items: tuple[Item, ...]  # the messages since the last compaction, in order

    @staticmethod
    def of(view: View) -> Pieces:
        tail = tuple(item for item in view.items if item.place == "tail")
        kept = tuple(item for item in view.items if item.place == "kept")
        return Pieces(kept, tail)


class Words(msgspec.Struct, frozen=True):
    """What goes into a snapshot besides the log: a model's reply, and what a person asked for."""

    written: str = ""
    instructions: str = ""
    root: str = ""  # the project's folder


class _Choice(NamedTuple):
    cut: Cut
    stays: list[Item]
    fixed: int  # tokens of all but the snapshot


def propose(
    view: View, budget: Budget, *, trigger: Trigger = "manual", words: Words | None = None
) -> Proposal:
    """The best compaction of this view, or why there is none."""
    words, pieces, before = words or Words(), Pieces.of(view), view.tokens
    places = cuts(pieces.items)
    if before <= 0 or not places:
        return nothing_to_do(view, trigger, "there is nothing that could be cut")
    choice = _choose(view, pieces, places, budget)
    if choice is None:
        least = min(places, key=lambda cut: cut.kept_tokens)
        after = _weighed(view, pieces, least).fixed
        why = f"what has to stay takes {after:,} of {budget.target:,} tokens"
        return _failed("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", before, after, trigger, why)
    return _made(view, pieces, choice, budget, trigger, words)


def _choose(view: View, pieces: Pieces, places: Sequence[Cut], budget: Budget) -> _Choice | None:
    """The first cut that leaves the snapshot a fair share; else any that leaves it enough."""
    staying = [item.tokens if item.stays else 0 for item in pieces.items]
    sums = [sum(item.tokens for item in pieces.fixed), *staying]
    at_least = list(accumulate(sums))
    for fair in (budget.snapshot // 2, MIN_SNAPSHOT):
        for cut in places:
            if at_least[cut.at] + cut.kept_tokens + fair <= budget.target:
                choice = _weighed(view, pieces, cut)
                if choice.fixed + fair <= budget.target:
                    return choice
    return None


def _weighed(view: View, pieces: Pieces, cut: Cut) -> _Choice:
    stays = _stays(view, pieces, cut.at)
    acknowledged = view.log.counter.text(ACKNOWLEDGEMENT)
    fixed = sum(item.tokens for item in stays) + acknowledged + cut.kept_tokens
    return _Choice(cut, stays, fixed)


def _made(
    view: View, pieces: Pieces, choice: _Choice, budget: Budget, trigger: Trigger, words: Words
) -> Proposal:
    (cut, stays, fixed), before, items = choice, view.tokens, pieces.items
    room = min(budget.snapshot, budget.target - fixed)
    snapshot = snapshot_of(view, covered(view, pieces, cut.at), room, words)
    after = fixed + view.log.counter.text(snapshot)
    status = judge(before, after, budget.target, snapshot)
    if status != "COMPRESSED":
        return _failed(status, before, after, trigger, f"{after:,} of {budget.target:,} tokens")
    body = Compaction(
        status=status,
        snapshot=snapshot,
        first_kept=items[cut.at].entry.id if cut.at < len(items) else None,
        kept=tuple(item.entry.id for item in stays),
        tokens_before=before,
        tokens_after=after,
        trigger=trigger,
        reason=words.instructions,
    )
    return Proposal(body, _report(items[: cut.at], stays, len(items) - cut.at, snapshot, view))


def nothing_to_do(view: View, trigger: Trigger, why: str) -> Proposal:
    return _failed("NOOP", view.tokens, view.tokens, trigger, why)


def judge(before: int, after: int, target: int, snapshot: str) -> CompactionStatus:
    if not snapshot.strip():
        return "COMPRESSION_FAILED_EMPTY_SUMMARY"
    if before <= 0 or after <= 0:
        return "COMPRESSION_FAILED_TOKEN_COUNT_ERROR"
    if after >= before or after > target:
        return "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT"
    return "COMPRESSED"


def covered(view: View, pieces: Pieces, at: int) -> list[Entry]:
    """The entries that the snapshot has to stand for: the snapshot before it, and the cut. A
    foreign summary is prose; where the log still has what it stands for, that is used as well."""
    from recollect.snapshot.sections import parse

    log, items, held = view.log, pieces.items, view.compaction
    end = log.at[items[at].entry.id] if at < len(items) else view.n
    body = held.body if held is not None else None
    prose = isinstance(body, Compaction) and parse(body.snapshot) is None
    start = 0 if prose else view.state.base
    facts = [e for e in log.entries[start:end] if not isinstance(e.body, Compaction)]
    return [held, *facts] if held is not None else facts


def snapshot_of(view: View, gone: Sequence[Entry], room: int, words: Words) -> str:
    """Within `room` tokens, from the log and from what a model wrote, if anything."""
    from recollect.snapshot.building import build_ledger
    from recollect.snapshot.merging import merge
    from recollect.snapshot.rendering import render
    from recollect.snapshot.sections import parse

    if words.instructions:
        asked = Text(text=f"Keep when compacting: {words.instructions}")
        gone = [*gone, Entry("", None, 0, Message(role="user", parts=(asked,)))]
    ledger = build_ledger(gone, root=words.root)
    reply = parse(words.written) if words.written else None
    if reply is not None:
        ledger = merge(ledger, reply)
    return render(ledger, room, view.log.counter.text)


def _stays(view: View, pieces: Pieces, at: int) -> list[Item]:
    """Initial context and pins before the cut, with the partners of calls and results."""
    gone = pieces.items[:at]
    wanted = {view.log.at[item.entry.id] for item in gone if item.stays}
    wanted = partners(view.log, wanted)
    also = [item for item in gone if view.log.at[item.entry.id] in wanted]
    return [*pieces.fixed, *also]


def _report(
    gone: Sequence[Item], stays: list[Item], kept: int, snapshot: str, view: View
) -> Report:
    staying = {item.entry.id for item in stays}
    replaced = [item for item in gone if item.entry.id not in staying]
    parts = [part for item in replaced for part in item.message.parts]
    calls = sum(isinstance(part, ToolCall) for part in parts)
    return Report(
        messages=len(replaced),
        calls=calls,
        results=sum(type(part).__name__ == "ToolResult" for part in parts),
        tokens=sum(item.tokens for item in replaced),
        kept_messages=kept,
        pins=sum(item.pinned for item in stays),
        snapshot_tokens=view.log.counter.text(snapshot),
    )


def _failed(
    status: CompactionStatus, before: int, after: int, trigger: Trigger, reason: str
) -> Proposal:
    body = Compaction(
        status=status,
        tokens_before=max(0, before),
        tokens_after=max(0, after),
        trigger=trigger,
        reason=reason,
    )
    return Proposal(body)
