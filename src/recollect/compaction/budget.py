"""How many tokens a view may have: where compaction begins, and what it has to reach."""

from __future__ import annotations

import msgspec

from recollect.profiles import Profile, find_profile
from recollect.settings import ContextSettings
from recollect.view.provider_counts import count_as_provider
from recollect.view.view import View

MIN_WINDOW = 1_000  # tokens that the messages get, however many the tools take
MIN_SNAPSHOT, MAX_SNAPSHOT = 300, 12_000  # tokens; the larger one is about 48,000 characters


class Budget(msgspec.Struct, frozen=True):
    """Tokens. `threshold` is where compaction begins, `target` what it has to reach; `snapshot` is
    what a snapshot gets where the target leaves that much, and more where it leaves plenty."""

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

    def allowing(self, tokens: int) -> Budget:
        """A budget that is reached by whatever is smaller than this."""
        return msgspec.structs.replace(self, target=max(self.target, tokens))

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


def calibrate_budget(budget: Budget, view: View, tool_tokens: int, model: str) -> Budget:
    """The budget of the messages, which is in the provider's tokens, in tokens as we count them.

    `tool_tokens` is our count of the tools, whose share the budget no longer contains. Everything
    is scaled by how the provider would count this view, so that it is over its budget in our
    tokens exactly when it is in the provider's.
    """
    window = budget.window + tool_tokens
    count = count_as_provider(view, tool_tokens, model, most=2 * window)
    least = min(MIN_WINDOW, budget.window)
    left = max(least, int(window / count.ratio) - tool_tokens)
    scale = left / max(1, budget.window)
    return Budget(
        window=left,
        threshold=int(budget.threshold * scale),
        target=int(budget.target * scale),
        snapshot=max(MIN_SNAPSHOT, int(budget.snapshot * scale)),
    )
