"""A session's compaction: proposed, shown, written and undone.

What did not work is recorded with its reason, unless there was nothing to do. When somebody else
writes meanwhile, the proposal is made again for what is there then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recollect.cli.console import Styler
from recollect.cli.context_report import ContextReport, load_report
from recollect.cli.dates import format_age
from recollect.cli.display_text import pluralize, sanitize
from recollect.cli.store_access import retry_on_head_moved
from recollect.compaction.budget import Budget
from recollect.compaction.proposal import Proposal, SnapshotInput, propose_compaction
from recollect.entries import Entry, Restore
from recollect.errors import RecollectError
from recollect.store.sqlite import SqliteStore
from recollect.view.view import View

if TYPE_CHECKING:
    from recollect.cli.compact import CompactOptions

BUDGET_STEP, SNAPSHOT_RESERVE = (
    1_000,
    1_500,
)  # tokens: a suggested budget is rounded up and holds a snapshot


class NothingToUndo(RecollectError):
    def __init__(self, session: str) -> None:
        super().__init__(
            f"no compaction is in force in session {session}; "
            f"`recollect context {session}` shows what is left out of it"
        )
        self.session = session


class CompactResult(NamedTuple):
    sight: ContextReport
    budget: Budget
    proposal: Proposal
    entry: Entry | None = None  # when it was written


async def compact_session(store: SqliteStore, wish: CompactOptions) -> CompactResult:
    async def attempt() -> CompactResult:
        sight = await load_report(store, await store.session(wish.prefix), named=wish.model)
        budget = Budget.of(sight.model, target=wish.budget)
        proposal = propose_compaction(
            sight.view, budget, words=SnapshotInput(instructions=wish.instructions)
        )
        if not wish.write or proposal.compaction.status == "NOOP":
            return CompactResult(sight, budget, proposal)
        body, head = proposal.compaction, sight.view.head
        (entry,) = await store.append(sight.session.id, [body], parent=head)
        return CompactResult(sight, budget, proposal, entry)

    return await retry_on_head_moved(attempt)


def report_lines(done: CompactResult, paint: Styler) -> Iterator[str]:
    body, report, session = done.proposal.compaction, done.proposal.report, done.sight.session_id
    change = f"{body.tokens_before:,} → {body.tokens_after:,} tokens"
    if done.entry is None:
        yield paint.bold(f"would compact session {session}: {change}")
    else:
        yield paint.bold(f"compacted session {session}: {change}")
    calls = f"{pluralize(report.calls, 'call')} and {pluralize(report.results, 'result')}"
    yield f"  goes   {pluralize(report.messages, 'message')} with {calls}, {report.tokens:,} tokens"
    yield f"  stays  {pluralize(report.kept_messages, 'message')}, {pluralize(report.pins, 'pin')}"
    yield f"  new    a snapshot of {report.snapshot_tokens:,} tokens, built by code"
    yield ""
    if done.entry is not None:
        yield paint.dim(f"`recollect show {done.entry.id}` shows the snapshot")
        yield paint.dim(f"`recollect compact --undo {session}` undoes it")
        return
    yield from sanitize(body.snapshot).split("\n")
    yield ""
    yield paint.dim("nothing was written")


def explain_failure(done: CompactResult) -> str:
    """Why it did not work, and what would help."""
    body, session = done.proposal.compaction, done.sight.session_id
    failed = f"session {session} was not compacted: {body.reason}"
    if body.status == "NOOP":
        return f"{failed}; `recollect context {session}` shows what the model sees"
    enough = _sufficient_budget(done.sight.view)
    if enough >= body.tokens_before:
        return f"{failed}; it has {body.tokens_before:,} and would not become smaller"
    shows = f"`recollect context {session}` shows them"
    return f"{failed}; try --budget {enough}, or fewer pins ({shows})"


def _sufficient_budget(view: View) -> int:
    """A budget in which what always stays has room, the newest message, and a small snapshot."""
    stays = [item for item in view.items[:-1] if item.stays]
    tokens = sum(item.tokens for item in (*stays, *view.items[-1:])) + SNAPSHOT_RESERVE
    return -(-tokens // BUDGET_STEP) * BUDGET_STEP


def compact_document(done: CompactResult) -> dict[str, Any]:
    body = done.proposal.compaction
    return {
        "session": done.sight.session.id,
        "entry": done.entry.id if done.entry is not None else None,
        "status": body.status,
        "reason": body.reason,
        "tokens_before": body.tokens_before,
        "tokens_after": body.tokens_after,
        "target": done.budget.target,
        "first_kept": body.first_kept,
        "kept": list(body.kept),
        "report": msgspec.to_builtins(done.proposal.report),
        "snapshot": body.snapshot,
    }


# --- undoing -------------------------------------------------------------------------------------


class UndoResult(NamedTuple):
    session_id: str  # short
    compaction: Entry
    edit: Entry
    before: int  # tokens
    after: int

    @property
    def sentence(self) -> str:
        return (
            f"undid the compaction {self.compaction.id} of {format_age(self.compaction.time)}: the model "
            f"sees {self.after:,} tokens again, was {self.before:,}"
        )


async def undo_compaction(store: SqliteStore, prefix: str, named: str | None) -> UndoResult:
    async def attempt() -> UndoResult:
        sight = await load_report(store, await store.session(prefix), named=named)
        held, session = sight.view.compaction, sight.session
        if held is None:
            raise NothingToUndo(sight.session_id)
        undo = Restore(entries=(held.id,))
        (edit,) = await store.append(session.id, [undo], parent=sight.view.head)
        after = await load_report(store, session, named=sight.model)
        return UndoResult(sight.session_id, held, edit, sight.view.tokens, after.view.tokens)

    return await retry_on_head_moved(attempt)
