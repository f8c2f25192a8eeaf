"""A proposed compaction with a snapshot that the user edited.

The text is stored as the user left it. It is checked like every snapshot: it has at least one
section that says something, and the view ends below the target of the proposal. What a later
compaction could not read, because it stands outside of all sections, is refused as well.
"""

from __future__ import annotations

import msgspec

from recollect.compaction.proposal import Proposal
from recollect.entries import CompactionStatus
from recollect.snapshot.snapshot_format import (
    SECTIONS,
    Snapshot,
    parse_snapshot,
    text_outside,
    write_snapshot,
)
from recollect.view.view import View

EDITED = "edited by hand"
_SHOWN = 60  # characters of a text that is refused


def edit_proposal(view: View, proposal: Proposal, snapshot: str) -> Proposal:
    """The proposal with this snapshot, or why it cannot be used; unchanged if the text is."""
    body, report = proposal.compaction, proposal.report
    if snapshot == body.snapshot or not proposal.succeeded:
        return proposal
    fixed = body.tokens_after - report.snapshot_tokens
    tokens = view.log.counter.text(snapshot)
    status, why = _check(snapshot, fixed + tokens, body.tokens_before, proposal.target)
    reason = why or "; ".join(filter(None, (EDITED, body.reason)))
    edited = msgspec.structs.replace(
        body,
        status=status,
        snapshot="" if why else snapshot,
        tokens_after=fixed + tokens,
        reason=reason,
    )
    report = msgspec.structs.replace(report, snapshot_tokens=tokens)
    return msgspec.structs.replace(proposal, compaction=edited, report=report)


def _check(text: str, after: int, before: int, target: int) -> tuple[CompactionStatus, str]:
    """`COMPRESSED`, or another status and why."""
    if parse_snapshot(text) is None:
        names = ", ".join(f"<{name}>" for name in SECTIONS)
        empty = f"the snapshot says nothing in any of its sections ({names})"
        return "COMPRESSION_FAILED_EMPTY_SUMMARY", empty
    if outside := text_outside(text):
        lost = f"{outside[:_SHOWN]!r} stands outside of every section and would be lost later"
        return "COMPRESSION_FAILED_EMPTY_SUMMARY", lost
    if after >= before:
        more = f"{after:,} tokens are not fewer than the {before:,} before"
        return "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", more
    if after > target:
        return "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", f"{after:,} of {target:,} tokens"
    return "COMPRESSED", ""


def with_directive(text: str, wanted: str) -> str:
    """The snapshot with one more directive, unless it says so already."""
    if wanted in text:
        return text
    found = parse_snapshot(text) or Snapshot()
    lines = [found.user_directives, f"- Keep when compacting: {wanted}"]
    directives = "\n".join(filter(None, lines))
    return write_snapshot(msgspec.structs.replace(found, user_directives=directives))
