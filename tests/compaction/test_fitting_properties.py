"""Whatever a session holds, its view can be made to fit, and what must be in it is in it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.budget import Budget
from recollect.compaction.view_reduction import fit_view
from recollect.entries import Body, Compaction, Elide
from recollect.tokens import counter_for
from recollect.view.view import View
from tests.compaction.generated_sessions import HardLog, hard_logs, initial_ids, unpaired

LIMITS = st.sampled_from([1_500, 4_000, 12_000, 60_000])
NOW = 10**9


def budget_for(limit: int) -> Budget:
    window = limit * 20 // 19
    return Budget(window, window * 7 // 10, window * 56 // 100, max(300, window // 10))


@given(hard_logs(), LIMITS, st.sampled_from(["", "gpt-4o"]))
def test_a_fitted_view_fits_with_its_initial_context_and_no_call_apart_from_its_result(
    log: HardLog, limit: int, name: str
) -> None:
    view = View.fold(log, counter=counter_for(name))
    before = view.items
    fitted = fit_view(view, limit, NOW, budget=budget_for(limit))
    after = fitted.view
    assert after.tokens <= limit
    assert after.tokens == sum(item.tokens for item in after.items)
    assert initial_ids(after) == initial_ids(view)
    assert unpaired(after) == (set(), set())
    assert before[-1].entry in [item.entry for item in after.items]
    assert after.problems == view.problems
    assert view.items == before
    assert fit_view(after, limit, NOW, budget=budget_for(limit)).edits == ()


def rank(edit: Body) -> int:
    if isinstance(edit, Elide):
        return 2 if edit.rule == "oversized" else 1
    return 3 if isinstance(edit, Compaction) else 0


@given(hard_logs(), LIMITS)
def test_oversized_output_is_shortened_before_anything_is_compacted(
    log: HardLog, limit: int
) -> None:
    edits = fit_view(View.fold(log), limit, NOW, budget=budget_for(limit)).edits
    ranks = [rank(edit) for edit in edits if rank(edit)]
    assert ranks.count(3) <= 1
    assert all(number < 3 for number in ranks[:-1])
