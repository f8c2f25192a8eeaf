"""What the user was shown and has not decided about: only exactly that can be approved."""

from __future__ import annotations

import asyncio

from recollect.display.trust_report import TrustReview
from recollect.workspace.memory_writer import PlannedMemory


class ShownProposals:
    def __init__(self) -> None:
        self.trust: TrustReview | None = None  # by `/trust`
        self.memory_file: PlannedMemory | None = None  # by `/init`
        self.drafting: asyncio.Task[None] | None = None  # waits for the model's draft
