"""Storing a compaction, with the hooks around it: one that was just made, or a proposal that the
user has read and perhaps edited.

A proposal is stored only for the very session it was made for: if anything was appended since, it
is refused. What the user wrote is checked before any hook hears of it; if it cannot be used,
nothing is stored and the proposal says why.
"""

from __future__ import annotations

from recollect.agent.hooks import Hooks
from recollect.compaction.edited_snapshot import edit_proposal, with_directive
from recollect.compaction.proposal import Proposal
from recollect.entries import Compaction
from recollect.errors import CannotEdit
from recollect.hook_events import ChatCompressed, PreCompress
from recollect.session import Session


async def store_compaction(session: Session, compaction: Compaction, hooks: Hooks) -> None:
    # a run goes on in a fork; a user who asked for this one session is asked again
    by_hand = compaction.trigger == "manual"
    await session.append(compaction, on_conflict="raise" if by_hand else "fork")
    event = ChatCompressed(
        session=session.id,
        status=compaction.status,
        trigger=compaction.trigger,
        tokens_before=compaction.tokens_before,
        tokens_after=compaction.tokens_after,
    )
    await hooks.fire(event)


async def apply_proposal(
    session: Session, hooks: Hooks, proposal: Proposal, snapshot: str
) -> Proposal:
    """Store a proposal with this text as its snapshot, and what hooks want kept in addition."""
    view = session.view()
    if view.head != proposal.head:
        why = "the session went on since this was proposed; propose it again"
        raise CannotEdit("compact", session.id, why)
    edited = edit_proposal(view, proposal, snapshot)
    if not edited.succeeded:
        return edited
    event = PreCompress(session=session.id, trigger="manual", tokens=view.tokens)
    decision = await hooks.fire(event)
    wanted = [one for one in (decision.keep, decision.additional_context) if one]
    for one in wanted:
        snapshot = with_directive(snapshot, one)
    if wanted:
        edited = edit_proposal(view, proposal, snapshot)
    if edited.succeeded:
        await store_compaction(session, edited.compaction, hooks)
    return edited
