"""Whatever happens in a session, its placeholders are true, and lead to every line of a file."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from recollect.view.elision_rules import plan_elisions
from recollect.view.view import View
from tests.view.file_session import STEPS, FileSession


@given(STEPS)
def test_every_line_is_visible_or_a_placeholder_leads_to_it_and_every_claim_is_true(
    steps: list[tuple[Any, ...]],
) -> None:
    session = FileSession()
    for step in steps:
        session.step(*step)
        assert session.lost_lines() == set(), step
        assert list(session.false_claims()) == [], step


@given(STEPS)
def test_planning_step_by_step_is_planning_from_scratch_and_the_fold_is_the_same(
    steps: list[tuple[Any, ...]],
) -> None:
    session = FileSession()
    for number, step in enumerate(steps):
        session.step(*step)
        view = session.view
        fresh = View.fold(view.entries)
        assert (fresh.messages, fresh.tokens) == (view.messages, view.tokens)
        now, over = view.n * 1_000, number % 7 == 0
        plan = plan_elisions(view, now, session.rules, over_budget=over)
        assert plan == plan_elisions(fresh, now, session.rules, over_budget=over)
        session.add(*plan.edits)
        # tokens of the pieces of a text are rounded up one by one
        assert abs(view.tokens - session.view.tokens - plan.tokens) <= 2 * len(plan.savings)
