"""How many tokens a view may have: where compaction begins, and what it has to reach."""

from __future__ import annotations

import msgspec

from recollect.profiles import find_profile
from recollect.view.view import View

MIN_SNAPSHOT, MAX_SNAPSHOT = 300, 8_000  # tokens


class Budget(msgspec.Struct, frozen=True):
    """Tokens. `threshold` is where compaction begins, `target` what it has to reach."""

    window: int
    threshold: int
    target: int
    snapshot: int

    @staticmethod
    def of(model: str = "", *, target: int | None = None) -> Budget:
        profile = find_profile(model)
        goal = target if target is not None else profile.threshold * 8 // 10
        return Budget(
            profile.window,
            profile.threshold if target is None else target,
            goal,
            min(MAX_SNAPSHOT, max(1_000, goal // 5)),
        )


def is_compaction_due(view: View, budget: Budget) -> bool:
    return view.tokens > budget.threshold
