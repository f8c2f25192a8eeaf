"""Compacting a session and undoing it, and the report of what changed.

A failed attempt is recorded with its reason, unless there was nothing to do. If another writer
appends in between, the proposal is made again for the new head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from recollect.cli.console import Styler
from recollect.cli.context_report import ContextReport, load_report
from recollect.cli.dates import format_age
from recollect.cli.display_text import pluralize, sanitize
from recollect.cli.store_access import retry_on_head_moved
from recollect.compaction.budget import Budget
from recollect.compaction.proposal import Proposal, SnapshotInput, propose_compaction
from recollect.entries import Entry, Restore, entry_to_json
from recollect.errors import RecollectError
from recollect.store.sqlite import SqliteStore
from recollect.view.view import View

BUDGET_STEP = 1_000  # tokens: a suggested budget is a multiple of it
SNAPSHOT_RESERVE = 1_500  # tokens of a suggested budget for a small snapshot


class CompactOptions(NamedTuple):
    prefix: str
    budget: int | None = None
    instructions: str = ""
    model: str | None = None
    write: bool = True


class NothingToUndo(RecollectError):
    def __init__(self, session: str) -> None:
        super().__init__(
            f"no compaction is in force in session {session}; "
            f"`recollect context {session}` shows what is left out of it"
        )
        self.session = session


class CompactResult(NamedTuple):
    report: ContextReport
    budget: Budget
    proposal: Proposal
    entry: Entry | None = None  # the compaction, if it was appended


async def compact_session(store: SqliteStore, options: CompactOptions) -> CompactResult:
    async def attempt() -> CompactResult:
        report = await load_report(store, await store.session(options.prefix), named=options.model)
        budget = Budget.of(report.model, target=options.budget)
        words = SnapshotInput(instructions=options.instructions)
        proposal = propose_compaction(report.view, budget, words=words)
        if not options.write or proposal.compaction.status == "NOOP":
            return CompactResult(report, budget, proposal)
        body, head = proposal.compaction, report.view.head
        (entry,) = await store.append(report.session.id, [body], parent=head)
        return CompactResult(report, budget, proposal, entry)

    return await retry_on_head_moved(attempt)


def report_lines(result: CompactResult, paint: Styler) -> Iterator[str]:
    body, report = result.proposal.compaction, result.proposal.report
    session = result.report.session_id
    verb = "would compact" if result.entry is None else "compacted"
    change = f"{body.tokens_before:,} → {body.tokens_after:,} tokens"
    yield paint.bold(f"{verb} session {session}: {change}")
    calls = f"{pluralize(report.calls, 'call')} and {pluralize(report.results, 'result')}"
    messages = pluralize(report.messages, "message")
    kept = pluralize(report.kept_messages, "message")
    yield f"  replaced  {messages} with {calls}, {report.tokens:,} tokens"
    yield f"  kept      {kept}, {pluralize(report.pins, 'pin')}"
    yield f"  new       a snapshot of {report.snapshot_tokens:,} tokens, built without a model"
    yield ""
    if result.entry is not None:
        yield paint.dim(f"`recollect show {result.entry.id}` shows the snapshot")
        yield paint.dim(f"`recollect compact --undo {session}` undoes it")
        return
    yield from sanitize(body.snapshot).split("\n")
    yield ""
    yield paint.dim("nothing was written")


def explain_failure(result: CompactResult) -> str:
    """Why the compaction failed, and the remedy."""
    body, session = result.proposal.compaction, result.report.session_id
    failed = f"session {session} was not compacted: {body.reason}"
    if body.status == "NOOP":
        return f"{failed}; `recollect context {session}` shows what the model sees"
    budget = _sufficient_budget(result.report.view)
    if budget >= body.tokens_before:
        return f"{failed}; it has {body.tokens_before:,} tokens and would not get smaller"
    return f"{failed}; try --budget {budget}, or fewer pins (`recollect context {session}`)"


def _sufficient_budget(view: View) -> int:
    """A budget that holds what always stays, the newest message and a small snapshot."""
    stays = [item for item in view.items[:-1] if item.stays]
    tokens = sum(item.tokens for item in (*stays, *view.items[-1:])) + SNAPSHOT_RESERVE
    return -(-tokens // BUDGET_STEP) * BUDGET_STEP


def compact_document(result: CompactResult) -> dict[str, Any]:
    body = result.proposal.compaction
    return {
        "session": result.report.session.id,
        "entry": result.entry.id if result.entry is not None else None,
        "status": body.status,
        "reason": body.reason,
        "tokens_before": body.tokens_before,
        "tokens_after": body.tokens_after,
        "target": result.budget.target,
        "first_kept": body.first_kept,
        "kept": list(body.kept),
        "report": msgspec.to_builtins(result.proposal.report),
        "snapshot": body.snapshot,
    }


# --- undoing -------------------------------------------------------------------------------------


class UndoResult(NamedTuple):
    session_id: str  # short
    compaction: Entry
    edit: Entry
    before: int  # tokens
    after: int


def describe_undo(undone: UndoResult) -> str:
    entry = undone.compaction
    tokens = f"the model sees {undone.after:,} tokens again, previously {undone.before:,}"
    return f"undid the compaction {entry.id} of {format_age(entry.time)}: {tokens}"


def undo_document(undone: UndoResult) -> dict[str, Any]:
    return {
        "session": undone.session_id,
        "undid": entry_to_json(undone.compaction),
        "edit": entry_to_json(undone.edit),
        "tokens_before": undone.before,
        "tokens_after": undone.after,
    }


async def undo_compaction(store: SqliteStore, prefix: str, named: str | None) -> UndoResult:
    async def attempt() -> UndoResult:
        report = await load_report(store, await store.session(prefix), named=named)
        compaction, session = report.view.compaction, report.session
        if compaction is None:
            raise NothingToUndo(report.session_id)
        undo = Restore(entries=(compaction.id,))
        (edit,) = await store.append(session.id, [undo], parent=report.view.head)
        after = await load_report(store, session, named=report.model)
        before, now = report.view.tokens, after.view.tokens
        return UndoResult(report.session_id, compaction, edit, before, now)

    return await retry_on_head_moved(attempt)
