"""`merge`: what a model wrote, joined with the ledger that code built.

The person's directives come from the log and from earlier snapshots alone: what a model wrote under
that heading is dropped, so it can neither remove nor forge one. Its prose (goal, knowledge, plan,
questions, notes on files) is cleaned, bounded, and stands beside the facts in a share of the room.
"""

from __future__ import annotations

import msgspec

from recollect.snapshot.ledger import Ledger
from recollect.snapshot.snapshot_format import Snapshot
from recollect.text import clean, clip_middle

_MAX_SECTION = 60_000  # characters of a section that a model wrote


def add_model_prose(ledger: Ledger, written: Snapshot | None) -> Ledger:
    """The ledger with a model's prose; the ledger itself when the model gave none."""
    if written is None:
        return ledger

    def told(text: str) -> str:
        return clip_middle(clean(text).strip(), _MAX_SECTION)

    kept = Snapshot(
        overall_goal=told(written.overall_goal),
        key_knowledge=told(written.key_knowledge),
        file_system_state=told(written.file_system_state),
        current_plan=told(written.current_plan),
        open_questions=told(written.open_questions),
    )
    return msgspec.structs.replace(ledger, written=kept)
