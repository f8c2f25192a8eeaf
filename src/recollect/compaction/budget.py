"""How many tokens a view may have: where compaction begins, and what it has to reach."""

from __future__ import annotations

import msgspec

from recollect.profiles import Profile, find_profile
from recollect.settings import ContextSettings
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
        """The budget of a model by default, or one that compacts to `target`."""
        budget = Budget.from_settings(find_profile(model), ContextSettings())
        return budget if target is None else budget.with_target(target)

    def with_target(self, target: int) -> Budget:
        """A budget that compacts to `target`."""
        return Budget(self.window, target, target, min(MAX_SNAPSHOT, max(1_000, target // 5)))

    @staticmethod
    def from_settings(
        profile: Profile, context: ContextSettings, learned_window: int | None = None
    ) -> Budget:
        """A model's budget with the user's figures, within the window an error message named."""
        window = min(profile.window, learned_window or profile.window)
        by_model = min(profile.threshold, window * 7 // 10)
        threshold = min(context.threshold or by_model, window * 9 // 10)
        target = min(context.target or threshold * 8 // 10, threshold)
        snapshot = max(MIN_SNAPSHOT, min(1_000, window // 8), min(MAX_SNAPSHOT, target // 5))
        return Budget(window, threshold, target, snapshot)


def is_compaction_due(view: View, budget: Budget) -> bool:
    return view.tokens > budget.threshold
