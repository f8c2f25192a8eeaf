"""A plan for a view that has grown is the plan that would be made from scratch."""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from recollect.entries import Compaction, Entry, Message, Pin, Restore, Text
from recollect.stale_rules import STALE_RULES
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View
from tests.view.growing_log import NOW, GrowingLog
from tests.view.logs import TOOLS, logs, name

HASTY = ElisionRules(
    keep_reads=1,
    stale=tuple(msgspec.structs.replace(rule, keep=1, age=1.0) for rule in STALE_RULES),
    max_lines=30,
    min_saving=1,
)
RULES = (
    HASTY,
    ElisionRules(min_saving=1),
    ElisionRules(keep_reads=2, keep_read_tokens=40, min_saving=1),
)
_TEXTS = st.sampled_from(["ok", "a line of text\n" * 20, "a line of text\n" * 90, "x" * 3_000])
_TOOLS = st.sampled_from(["read_file", *TOOLS])
_PATHS: st.SearchStrategy[Any] = st.sampled_from(["a.py", "./a.py", "b.py", ["a.py", "b.py"], ""])
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("use"), _TOOLS, _PATHS, _TEXTS, st.booleans()),
        st.tuples(st.just("use"), _TOOLS, _PATHS, _TEXTS, st.just(False)),
        st.tuples(st.just("apply")),
        st.tuples(st.sampled_from(["pin", "restore", "compact"]), st.integers(0, 30)),
        st.tuples(st.just("look back"), st.integers(0, 30)),
        st.tuples(st.just("say")),
    ),
    max_size=30,
)


class Checked(GrowingLog):
    """Plans for its view are compared with those made from scratch."""

    def __init__(self, rules: ElisionRules) -> None:
        super().__init__(rules, pace=1_000)
        self.earlier = [self.view]

    def step(self, kind: str, *given: Any) -> None:
        some = name(given[0] % max(1, self.view.n)) if kind in ("pin", "restore", "compact") else ""
        match kind:
            case "use":
                tool, path, text, failed = given
                texts = [text] * (len(path) if isinstance(path, list) else 1)
                self.use(tool, {"path": path}, *texts, is_error=failed)
            case "apply":
                self.add(*plan_elisions(self.view, NOW, self.rules).edits)
            case "pin":
                self.add(Pin(entries=(some,)))
            case "restore":
                self.add(Restore(entries=(some,)))
            case "compact":
                self.add(Compaction(status="COMPRESSED", snapshot="so far", first_kept=some))
            case "say":
                self.add(Message(role="user", parts=(Text(text="and now?"),)))
        self.earlier.append(self.view)

    def check(self, now: int = NOW) -> list[str]:
        """Compare, and return the entries that the plan would leave out."""
        plan = plan_elisions(self.view, now, self.rules)
        assert plan == self.plan(now)
        return [saving.elided.entry for saving in plan.savings]


@given(_STEPS, st.sampled_from(RULES), st.data())
def test_a_plan_for_a_view_that_has_grown_is_the_one_made_from_scratch(
    steps: list[tuple[Any, ...]], rules: ElisionRules, data: st.DataObject
) -> None:
    growing = Checked(rules)
    for step in steps:
        growing.step(*step)
        if step[0] == "look back":  # a view from before the one that was planned for last
            old = growing.earlier[step[1] % len(growing.earlier)]
            assert plan_elisions(old, NOW, rules) == plan_elisions(
                View.fold(old.entries), NOW, rules
            )
        if data.draw(st.booleans()):
            growing.check(data.draw(st.sampled_from([NOW, 0, growing.view.n * 1_000])))
    growing.check()


@given(logs())
def test_it_is_the_same_with_invalid_edits(log: tuple[Entry, ...]) -> None:
    view = View.fold()
    for entry in log:
        view = view.append(entry)
        fresh = View.fold(view.entries)
        assert plan_elisions(view, NOW, HASTY) == plan_elisions(fresh, NOW, HASTY)


def test_a_restored_message_is_no_longer_proposed() -> None:
    growing = Checked(HASTY)
    for _ in range(4):
        growing.step("use", "read_file", "a.py", "a line of text\n" * 20, False)
    growing.check()
    growing.add(Restore(entries=(name(1),)))  # the oldest result, before anything left it out
    assert name(1) not in growing.check()


def test_a_message_whose_pin_was_undone_is_proposed_again() -> None:
    growing = Checked(HASTY)
    for _ in range(4):
        growing.step("use", "run_shell_command", "", "a line of text\n" * 20, False)
    growing.add(Pin(entries=(name(1),)))
    growing.check()
    pin = name(growing.view.n - 1)
    growing.add(Restore(entries=(pin,)))
    assert name(1) in growing.check()


def test_the_next_plan_does_no_more_work_because_the_session_is_long() -> None:
    """Counted in function calls, so that a busy machine does not matter."""

    def work(uses: int) -> int:
        growing = Checked(ElisionRules(keep_reads=2))
        for number in range(uses):
            path = f"src/file_{number % (uses // 4)}.py"
            growing.use("read_file", {"path": path}, "ok")
            growing.use("run_shell_command", {}, "ok")
        plan_elisions(growing.view, NOW, growing.rules)
        growing.use("read_file", {"path": "src/file_1.py"}, "ok")
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        plan_elisions(growing.view, NOW, growing.rules)
        sys.setprofile(None)
        return calls

    assert work(1_000) < 1.5 * work(100)
