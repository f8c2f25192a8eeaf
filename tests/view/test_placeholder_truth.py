"""Whatever happens in a session, its placeholders are true, and lead to every line of a file."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from recollect.view.elision_rules import plan_elisions
from recollect.view.view import View
from tests.view.file_session import RULES, STEPS, FileSession

_READS = st.tuples(
    st.just("read"),
    st.sampled_from(["a.py", "a.py", "b.py"]),
    st.just("ours"),
    st.tuples(st.integers(1, 30), st.integers(15, 45)),
)


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


@given(
    st.lists(
        st.one_of(
            _READS,
            st.tuples(st.just("batch"), st.just("blocks"), st.just((1, 40))),
            st.tuples(st.sampled_from(["change", "change unseen"]), st.just("a.py")),
            st.tuples(st.just("apply"), st.booleans()),
            st.tuples(st.just("request")),
            st.tuples(st.just("compact"), st.integers(0, 40)),
        ),
        min_size=10,
        max_size=40,
    ),
    st.integers(1, 3),
)
def test_where_the_cache_is_no_reason_nothing_is_shown_in_full_beyond_the_kept_count(
    steps: list[tuple[Any, ...]], keep: int
) -> None:
    session = FileSession(msgspec.structs.replace(RULES, keep_reads=keep, max_lines=1_000))
    for step in steps:
        session.step(*step)
    session.step("apply", True)
    assert list(session.superfluous_reads(keep)) == []
