"""What was sent before is left out only when breaking the prompt cache for it is earned back."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Compaction, Message, Request, Text, handle_of
from recollect.view.cache_cost import FREE, REWRITE_COST
from recollect.view.elision_plan import ElisionPlan
from recollect.view.elision_rules import ElisionRules, plan_elisions
from tests.growth import is_linear
from tests.view.growing_log import GrowingLog

RULES = ElisionRules(min_saving=500)


class SentLog(GrowingLog):
    """All entries at the same time, and requests that sent what is there."""

    def __init__(self, rules: ElisionRules = RULES) -> None:
        super().__init__(rules)

    def send(self) -> None:
        self.add(Request(head=self.view.head, as_of=0))
        self.add(Message(role="model", parts=(Text(text="ok"),)))

    def say(self, tokens: int) -> None:
        self.add(Message(role="user", parts=(Text(text="word" * tokens),)))

    def due(self, now: int = 1_000, *, over_budget: bool = False) -> ElisionPlan:
        return plan_elisions(self.view, now, self.rules, over_budget=over_budget)


def six_reads(session: SentLog) -> list[str]:
    """The first of them superseded: about 1,500 tokens."""
    return [session.read("a.py", 1, 250) for _ in range(6)]


def test_output_that_was_not_sent_yet_is_shortened_before_its_first_send() -> None:
    session = SentLog()
    session.say(50_000)
    session.send()
    key = session.use("other_tool", {}, "one line of output\n" * 5_000)
    plan = session.due()
    assert [saving.elided.entry for saving in plan.savings] == [key]
    assert plan.reason == FREE
    assert {edit.reason for edit in plan.edits} == {plan.reason}


def test_a_read_with_much_behind_it_waits_until_the_cache_has_expired() -> None:
    session = SentLog()
    first, *_ = six_reads(session)
    session.send()
    session.read("a.py", 1, 250)
    session.say(100)
    assert session.due().savings == ()
    late = session.due(now=300_001)
    assert first in [saving.elided.entry for saving in late.savings]
    assert late.reason == "the prompt cache has expired"
    at_once = session.due(over_budget=True)
    assert at_once.savings == late.savings
    assert at_once.reason == "over budget"


def test_what_is_earned_back_within_the_setting_goes() -> None:
    session = SentLog(msgspec.structs.replace(RULES, payback_requests=100))
    six_reads(session)
    session.send()
    plan = session.due()
    # five reads behind one: 11.5 * 5, and a few words
    requests = int(plan.reason.removeprefix("earned back after about ").split()[0])
    assert 55 <= requests <= 62
    session.rules = msgspec.structs.replace(RULES, payback_requests=50)
    assert session.due().savings == ()


def test_early_results_are_left_alone_when_the_later_ones_pay_without_them() -> None:
    session = SentLog()
    six_reads(session)
    session.say(60_000)
    session.send()
    newer = [session.read("b.py", 1, 300) for _ in range(6)]
    plan = session.due()
    assert [saving.elided.entry for saving in plan.savings] == newer[:1]
    assert plan.reason == FREE


def test_after_an_edit_what_stands_behind_it_has_to_be_written_anyway() -> None:
    session = SentLog()
    six_reads(session)
    session.send()
    assert session.due().savings == ()
    session.add(
        Compaction(status="COMPRESSED", snapshot="so far", first_kept=session.view.entries[0].id)
    )
    assert session.due().reason == FREE


def test_the_cost_of_a_plan_that_waits_does_not_grow_with_the_session() -> None:
    def prepare(size: int) -> Callable[[], None]:
        session = SentLog()
        for number in range(size):
            session.read(f"f{number % 10}.py", 1, 30)
            session.send()
            session.due()

        def work() -> None:
            for _ in range(20):
                session.read("f1.py", 1, 30)
                session.send()
                session.due()

        return work

    assert is_linear(prepare, 100, 400, slack=1.0)


def test_of_43_reads_of_one_file_in_one_prompt_never_more_than_nine_are_sent_whole() -> None:
    """Five stay; three or four more wait until leaving them out is earned back."""
    session = SentLog(ElisionRules())
    session.say(10)
    most, breaks = 0, 0
    for _ in range(43):
        session.read("a.py", 1, 400)
        plan = session.due()
        breaks += bool(plan.edits)
        session.add(*plan.edits)
        most = max(most, str(session.view.messages).count("→line 300 of a.py"))
        session.send()
    assert 5 <= most <= 9
    assert breaks <= 15
    assert str(session.view.messages).count("[recall ") >= 43 - 9


@given(
    st.lists(st.one_of(st.integers(100, 600), st.integers(-3_000, -100)), min_size=15, max_size=40),
    st.sampled_from([5, 20, 60]),
    st.sampled_from([1, 3, 5]),
)
def test_copies_beyond_the_kept_count_wait_only_while_leaving_them_out_does_not_pay(
    steps: list[int], payback: int, keep: int
) -> None:
    """Each step is a read of so many lines, or so many tokens of something else."""
    rules = ElisionRules(keep_reads=keep, min_saving=2_000, payback_requests=payback)
    session, lines = SentLog(rules), 100
    for step in steps:
        if step < 0:
            session.say(-step)
        else:
            lines = max(lines, step)  # covers what was read before
            session.read("a.py", 1, lines)
        session.add(*session.due().edits)
        items = session.view.items
        reads = [item for item in items if "→line 1 of a.py" in str(item.message)]
        excess = reads[: max(0, len(reads) - keep)]
        for number, first in enumerate(excess):
            saved = sum(item.tokens for item in excess[number:])
            named = [f"shown by {handle_of(item.entry.id)}" for item in excess[number:]]
            # a placeholder that names one of them has to change with it
            begin = min(
                at
                for at, item in enumerate(items)
                if item is first or any(text in str(item.message) for text in named)
            )
            behind = sum(item.tokens for item in items[begin + 1 :] if item not in excess[number:])
            waits = saved < rules.min_saving * 1.15  # what the placeholders take is not saved
            assert waits or REWRITE_COST * behind / saved > payback * 0.85
        session.send()
