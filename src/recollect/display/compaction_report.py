"""Compacting a session by the user's wish: the proposal, what goes and what stays, why one failed.

Every door makes a proposal here and says the same of it. A preview stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from recollect.compaction.compaction_range import CompactionRange
from recollect.compaction.proposal import OnRound, Proposal, ignore_round
from recollect.display.display_text import one_line, pluralize
from recollect.display.short_ids import find_entry, shorten_entry_id, shorten_session_id
from recollect.entries import Entry
from recollect.models.resolve import ResolvedModel
from recollect.runtime.model_choice import next_model, writes_snapshots
from recollect.runtime.prepare_apart import propose_apart
from recollect.runtime.runtime import Runtime
from recollect.session import Session
from recollect.store.contract import SessionInfo
from recollect.store.ids import LAST
from recollect.tokens import counter_for
from recollect.view.view import View
from recollect.view_loader import fold_stored, read_needed_entries

BUDGET_STEP = 1_000  # tokens: a suggested budget is a multiple of it
SNAPSHOT_RESERVE = 1_500  # tokens of a suggested budget for a small snapshot


class CompactionWish(NamedTuple):
    """What the user wants of a compaction; entries and sessions as they were typed."""

    session: str = LAST
    instructions: str = ""
    named: str | None = None  # a model
    no_model: bool = False
    target: int | None = None  # tokens
    since: str | None = None  # the first entry that is replaced
    until: str | None = None  # the first that stays
    preview: bool = False


class CompactionOutcome(NamedTuple):
    """What came of it."""

    session: SessionInfo
    session_id: str  # short
    model: ResolvedModel
    view: View  # before it
    target: int
    threshold: int  # where an automatic compaction begins
    proposal: Proposal
    entry: Entry | None = None  # the compaction, if it was appended
    short: str = ""  # its id


class CompactionStart(NamedTuple):
    """A wish with everything resolved: what is compacted, and who writes."""

    session: Session
    info: SessionInfo
    model: ResolvedModel
    by_model: bool
    part: CompactionRange | None


async def start_compaction(runtime: Runtime, wish: CompactionWish) -> CompactionStart:
    find = runtime.find_session if wish.preview else runtime.find_writable_session
    info, store = await find(wish.session), runtime.store
    entries = await read_needed_entries(store, info.id) if info.head else ()
    model = next_model(runtime.settings, entries, wish.named or "")
    view = await fold_stored(store, entries, counter_for(model.name), runtime.curation)
    session = Session(store, info.id, view, runtime.door.warn)
    named = wish.named is not None
    by_model = not wish.no_model and writes_snapshots(model, named=named)
    if named and not by_model and not wish.no_model:
        runtime.door.warn(
            f"{one_line(model.name)} is unknown, has no API key or is too small, so code builds "
            "the snapshot; `recollect models` lists the models"
        )
    since, until = [await find_entry(store, one, info) for one in (wish.since, wish.until)]
    part = CompactionRange(since, until) if since or until else None
    return CompactionStart(session, info, model, by_model, part)


async def run_compaction(
    runtime: Runtime, wish: CompactionWish, start: CompactionStart, on_round: OnRound = ignore_round
) -> CompactionOutcome:
    """Propose it, and store it unless it is a preview."""
    session, info, model, by_model, part = start
    view, store = session.view(), runtime.store
    budget = runtime.message_budget(model, session)
    make = partial(propose_apart, runtime) if wish.preview else runtime.compact
    proposal = await make(
        session,
        model,
        target=wish.target,
        instructions=wish.instructions,
        use_model=by_model,
        on_round=on_round,
        part=part,
    )
    stored = proposal.succeeded and not wish.preview
    entry = session.view().compaction if stored else None
    short = await shorten_entry_id(store, entry.id) if entry is not None else ""
    session_id, target = await shorten_session_id(store, info.id), wish.target or budget.target
    threshold = budget.threshold
    return CompactionOutcome(
        info, session_id, model, view, target, threshold, proposal, entry, short
    )


def describe_change(proposal: Proposal) -> str:
    body = proposal.compaction
    return f"{body.tokens_before:,} → {body.tokens_after:,} tokens in messages"


def describe_parts(outcome: CompactionOutcome) -> Iterator[tuple[str, str]]:
    """What is replaced, what is kept, what is new, and the reason, each with a label."""
    report, body = outcome.proposal.report, outcome.proposal.compaction
    calls = f"{pluralize(report.calls, 'call')} and {pluralize(report.results, 'result')}"
    messages = pluralize(report.messages, "message")
    yield "replaced", f"{messages} with {calls}, {report.tokens:,} tokens"
    kept = pluralize(report.kept_messages, "message")
    rest = max(0, body.tokens_after - report.snapshot_tokens)
    yield "kept", f"{kept}, {pluralize(report.pins, 'pin')}; with the instructions {rest:,} tokens"
    who = f"by {one_line(outcome.model.name)}" if outcome.proposal.by_model else ""
    who = who or "built without a model"
    yield "new", f"a snapshot of {report.snapshot_tokens:,} tokens, {who}"
    if body.reason:
        yield "", one_line(body.reason)


class CompactionRemedies(NamedTuple):
    """How a door says what to do about a compaction that failed."""

    look: str  # at what the model sees
    shrink: Callable[[int], str]  # given a budget that would do


def explain_failure(outcome: CompactionOutcome, remedies: CompactionRemedies) -> str:
    """Why the compaction failed, and the remedy."""
    body = outcome.proposal.compaction
    failed = f"session {outcome.session_id} was not compacted: {one_line(body.reason)}"
    if body.status in ("NOOP", "COMPRESSION_FAILED_EMPTY_SUMMARY"):
        return f"{failed}; {remedies.look}"
    budget = sufficient_budget(outcome.view)
    if budget >= body.tokens_before:
        return f"{failed}; it has {body.tokens_before:,} tokens and would not get smaller"
    return f"{failed}; {remedies.shrink(budget)}"


def sufficient_budget(view: View) -> int:
    """A budget that holds what always stays, the newest message and a small snapshot."""
    stays = [item for item in view.items[:-1] if item.stays]
    tokens = sum(item.tokens for item in (*stays, *view.items[-1:])) + SNAPSHOT_RESERVE
    return -(-tokens // BUDGET_STEP) * BUDGET_STEP
