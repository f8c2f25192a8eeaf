from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.budget import Budget
from recollect.profiles import find_profile
from recollect.settings import ContextSettings

models = st.sampled_from(["", "gpt-5", "gemini-2.5-pro", "claude-sonnet-5", "smollm2-135m"])
figures = st.integers(0, 100_000_000)


@given(models, st.integers(1_000, 1_000_000))
def test_without_settings_a_model_has_its_profiles_threshold(model: str, target: int) -> None:
    profile = find_profile(model)
    budget = Budget.of(model)
    assert (budget.window, budget.threshold) == (profile.window, profile.threshold)
    assert budget.target == budget.threshold * 8 // 10
    chosen = Budget.of(model, target=target)
    assert (chosen.window, chosen.threshold, chosen.target) == (profile.window, target, target)


@given(figures, figures, models)
def test_a_budget_never_exceeds_the_window_and_its_parts_are_in_order(
    threshold: int, target: int, model: str
) -> None:
    context, profile = ContextSettings(threshold=threshold, target=target), find_profile(model)
    budget = Budget.from_settings(profile, context)
    assert 0 <= budget.target <= budget.threshold < budget.window == profile.window
    if threshold and threshold < budget.window * 9 // 10:
        assert budget.threshold == threshold
    smaller = Budget.from_settings(profile, context, learned_window=4_096)
    assert (smaller.window, smaller.threshold < 4_096) == (4_096, True)
