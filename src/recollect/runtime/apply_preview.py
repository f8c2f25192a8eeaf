"""Applying a compaction that was shown as a preview, with the snapshot as the user left it."""

from __future__ import annotations

from recollect.agent.apply_compaction import apply_proposal
from recollect.compaction.proposal import Proposal
from recollect.runtime.coding_agent import build_hooks
from recollect.runtime.runtime import Runtime
from recollect.session import Session


async def apply_preview(
    runtime: Runtime, session: Session, proposal: Proposal, snapshot: str
) -> Proposal:
    """Store it, with the hooks of any compaction by hand. What cannot be used is not stored: the
    proposal that is returned has its status and the reason."""
    hooks = build_hooks(runtime.effective, warn=runtime.door.warn)
    return await apply_proposal(session, hooks, proposal, snapshot)
