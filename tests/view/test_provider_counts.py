"""What providers report decides how many tokens a view has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.compaction.budget import Budget, calibrate_budget
from recollect.entries import Body, Compaction, Elide, Elided, Entry, Message, Request, Text, Usage
from recollect.testing import user
from recollect.tokens import Calibration
from recollect.view.provider_counts import count_as_provider
from recollect.view.view import View
from tests.growth import is_linear

BUDGET = Budget(window=100_000, threshold=70_000, target=56_000, snapshot=8_000)
WORDS = "word" * 1_000  # a thousand tokens, as we count them


def replied(reported: int | None, text: str = "ok") -> Message:
    usage = None if reported is None else Usage(input=reported, output=1)
    return Message(role="model", parts=(Text(text=text),), usage=usage)


def asked(tokens: int, model: str = "m") -> Request:
    return Request(head=None, as_of=0, model=model, tokens=tokens)


def grown(view: View, *bodies: Body) -> View:
    for body in bodies:
        view = view.append(Entry(f"{view.n:032x}", view.head, 0, body))
    return view


def log(*bodies: Body) -> View:
    return grown(View.fold(), *bodies)


def tokens(view: View, tools: int = 0) -> int:
    return count_as_provider(view, tools, "m").tokens


def test_without_reports_our_own_count_stands_and_the_budget_is_unchanged() -> None:
    view = log(user(WORDS), asked(1_000), replied(None))
    assert tokens(view, 500) == view.tokens + 500
    assert calibrate_budget(BUDGET, view, 500, "m") == BUDGET


def test_the_report_is_the_count_of_the_prefix_and_the_estimate_is_for_what_came_since() -> None:
    view = log(user(WORDS), asked(1_500), replied(5_000))
    factor = Calibration().learn(1_500, 5_000).factor
    assert count_as_provider(view, 500, "m").calibration.factor == factor
    later = grown(view, user(WORDS))
    assert tokens(later, 500) == 5_000 + int(factor * 1_001 + 0.999)


def test_what_was_elided_since_takes_its_share_of_the_report_away() -> None:
    view = log(user(WORDS), user(WORDS), asked(2_000), replied(2_600))
    elided = grown(view, Elide(rule="user", items=(Elided(entry=f"{0:032x}", placeholder="gone"),)))
    assert 1_300 <= tokens(elided) < 1_310 < 2_600 < tokens(view)


def test_after_a_compaction_only_the_factor_counts() -> None:
    view = log(user(WORDS), asked(1_000), replied(10_000))
    compaction = Compaction(
        snapshot="s" * 400, first_kept=None, status="COMPRESSED", tokens_before=1, tokens_after=1
    )
    short = grown(view, compaction)
    assert tokens(short) == Calibration().learn(1_000, 10_000).apply(short.tokens)


def test_only_replies_to_requests_of_the_same_model_count() -> None:
    imported = log(user(WORDS), replied(90_000))
    assert tokens(imported) == imported.tokens
    other = log(user(WORDS), asked(1_000, "other"), replied(90_000))
    assert tokens(other) == other.tokens


def test_a_shorter_view_of_the_same_log_does_not_see_later_reports() -> None:
    early = log(user(WORDS), asked(1_000), replied(1_500), user(WORDS))
    late = grown(early, asked(2_001), replied(9_000))
    assert tokens(late) > 9_000 > 3_000 > tokens(early)
    assert tokens(early) == tokens(log(*(entry.body for entry in early.entries)))


def test_a_report_that_does_not_fall_with_its_request_is_not_used() -> None:
    view = log(user(WORDS * 8), asked(8_000), replied(95_000), asked(4_000), replied(95_000))
    count = count_as_provider(view, 0, "m")
    assert count.tokens == count.calibration.apply(view.tokens) < 2 * view.tokens
    honest = grown(view, asked(8_002), replied(9_000))
    assert tokens(honest) == pytest.approx(9_000, abs=5)


@given(st.floats(0.05, 8.0), st.integers(1, 30), st.booleans())
def test_a_count_is_bounded_on_the_side_where_the_provider_may_be(
    factor: float, requests: int, compacted: bool
) -> None:
    view = View.fold()
    for number in range(1, requests + 1):
        view = grown(view, user(WORDS), asked(number * 1_001 - 1))
        view = grown(view, replied(int((number * 1_001 - 1) * factor)))
    if compacted:
        view = grown(view, Compaction(status="COMPRESSED", snapshot="word" * 200))
    count, real = count_as_provider(view, 0, "m"), int(view.tokens * factor)
    assert count.basis == ("corrected" if compacted else "reported")
    if count.bound == "at least":
        assert count.tokens <= real + 5
    if count.bound == "at most":
        assert count.tokens >= real - 5
    if 0.6 < factor < 1.9:
        assert count.bound == ""


def test_what_a_count_stands_on_is_told() -> None:
    none = log(user(WORDS), asked(1_000), replied(None))
    assert count_as_provider(none, 0, "m").basis == "ours"
    lied = log(user(WORDS), asked(1_000), replied(10**9))
    assert count_as_provider(lied, 0, "m").basis == "ours"
    told = log(user(WORDS), asked(1_000), replied(1_200))
    assert count_as_provider(told, 0, "m").basis == "reported"
    assert count_as_provider(told, 0, "m", most=1_000).basis == "ours"
    elided = grown(told, Elide(rule="r", items=(Elided(entry=f"{0:032x}", placeholder="gone"),)))
    assert count_as_provider(elided, 0, "m").basis == "corrected"


@pytest.mark.parametrize("factor", [0.5, 0.8, 1.0, 1.7, 3.0])
def test_the_view_is_over_the_budget_exactly_when_the_provider_would_say_so(factor: float) -> None:
    for size in range(1, 66, 5):
        view = log(user(WORDS * size), asked(size * 1_000), replied(int(size * 1_000 * factor)))
        count = count_as_provider(view, 0, "m").tokens
        calibrated = calibrate_budget(BUDGET, view, 0, "m")
        if abs(count - BUDGET.threshold) > 10:
            assert (view.tokens > calibrated.threshold) == (count > BUDGET.threshold)
        if abs(count - BUDGET.window) > 10:
            assert (view.tokens > calibrated.window) == (count > BUDGET.window)


def test_counting_before_every_request_of_a_long_session_costs_as_much_as_what_is_new() -> None:
    def prepare(size: int) -> Callable[[], object]:
        def work() -> None:
            view = View.fold()
            for n in range(size):
                view = grown(view, user("x" * 40), asked(10 * n + 10), replied(12 * n + 12))
                count_as_provider(view, 100, "m")

        return work

    assert is_linear(prepare, 300, 3_000)


REPORTS = st.one_of(st.none(), st.integers(-(10**19), 10**19), st.integers(1, 200_000))


@given(st.lists(st.tuples(st.integers(-5, 50_000), REPORTS), max_size=12), st.integers(0, 9_000))
def test_whatever_is_reported_the_budget_stays_usable(
    reports: list[tuple[int, int | None]], tools: int
) -> None:
    bodies = [body for size, count in reports for body in (asked(size), replied(count))]
    view = log(user(WORDS * 3), *bodies)
    count = count_as_provider(view, tools, "m")
    assert count.tokens >= count.counted // 2 > 0
    assert 0.5 <= count.calibration.factor <= 2.0
    assert 0.0 <= count.calibration.error <= 1.0
    calibrated = calibrate_budget(BUDGET, view, tools, "m")
    assert 1_000 <= calibrated.window <= 2 * (BUDGET.window + tools)
    assert 0 < calibrated.target <= calibrated.threshold <= calibrated.window
    assert calibrated.snapshot >= 300


@given(st.lists(st.tuples(st.sampled_from("rmux"), st.integers(1, 9_000)), max_size=30))
def test_reading_the_log_piece_by_piece_gives_the_same_as_all_at_once(
    said: list[tuple[str, int]],
) -> None:
    kinds = {
        "r": asked,
        "m": replied,
        "u": lambda size: user("x" * size),
        "x": lambda _: replied(None),
    }
    view = View.fold()
    for kind, size in said:
        view = grown(view, kinds[kind](size))  # type: ignore[operator]
        whole = View.fold(view.entries)
        assert count_as_provider(view, 7, "m") == count_as_provider(whole, 7, "m")
