"""A plan for a view that has grown is the plan that would be made from scratch."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.entries import Compaction, Entry, Message, Pin, Restore, Text, json_text
from recollect.entries import ToolCall as Call
from recollect.entries import ToolResult as Result
from recollect.view.elision_rules import ElisionPlan, ElisionRules, plan_elisions
from recollect.view.view import View
from tests.view.logs import logs, name

NOW = 100_000_000
HASTY = ElisionRules(
    keep_reads=1,
    keep_shell=1,
    keep_search=1,
    shell_age=1_000,
    search_age=1_000,
    max_lines=30,
    min_saving=1,
)
RULES = (
    HASTY,
    ElisionRules(min_saving=1),
    ElisionRules(keep_reads=2, keep_read_tokens=40, min_saving=1),
)
_TEXTS = st.sampled_from(["ok", "a line of text\n" * 20, "a line of text\n" * 90, "x" * 3_000])
_TOOLS = st.sampled_from(["read_file", "read_file", "run_shell_command", "grep", "replace"])
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


def scratch(view: View, now: int, rules: ElisionRules) -> ElisionPlan:
    return plan_elisions(View.fold(view.entries), now, rules)


class Growing:
    """A view that grows; every plan for it is held against one from scratch."""

    def __init__(self, rules: ElisionRules) -> None:
        self.view, self.rules = View.fold(()), rules
        self.earlier = [self.view]

    def add(self, *bodies: object) -> None:
        for body in bodies:
            n = self.view.n
            entry = Entry(name(n), name(n - 1) if n else None, n * 1_000, body)  # type: ignore[arg-type]
            self.view = self.view.append(entry)
        self.earlier.append(self.view)

    def step(self, kind: str, *given: Any) -> None:
        named = name(given[0] % max(1, self.view.n)) if kind in ("pin", "restore") else ""
        match kind:
            case "use":
                tool, path, text, failed = given
                call = Call(id=f"c{self.view.n}", name=tool, arguments=json_text({"path": path}))
                parts = (Text(text=text),) * (len(path) if isinstance(path, list) else 1)
                result = Result(call_id=call.id, name=tool, content=parts, is_error=failed)
                self.add(Message(role="model", parts=(call,)))
                self.add(Message(role="user", parts=(result,)))
            case "apply":
                self.add(*plan_elisions(self.view, NOW, self.rules).edits)
            case "pin":
                self.add(Pin(entries=(named,)))
            case "restore":
                self.add(Restore(entries=(named,)))
            case "compact":
                first = name(given[0] % max(1, self.view.n))
                self.add(Compaction(status="COMPRESSED", snapshot="so far", first_kept=first))
            case "say":
                self.add(Message(role="user", parts=(Text(text="and now?"),)))

    def check(self, now: int) -> None:
        assert plan_elisions(self.view, now, self.rules) == scratch(self.view, now, self.rules)


@settings(max_examples=300, deadline=None)
@given(_STEPS, st.sampled_from(RULES), st.data())
def test_a_plan_for_a_view_that_has_grown_is_the_one_made_from_scratch(
    steps: list[tuple[Any, ...]], rules: ElisionRules, data: st.DataObject
) -> None:
    growing = Growing(rules)
    for step in steps:
        growing.step(*step)
        if step[0] == "look back":  # a view from before the one that was planned for last
            old = growing.earlier[step[1] % len(growing.earlier)]
            assert plan_elisions(old, NOW, rules) == scratch(old, NOW, rules)
        if data.draw(st.booleans()):
            growing.check(data.draw(st.sampled_from([NOW, 0, growing.view.n * 1_000])))
    growing.check(NOW)


@given(logs())
def test_it_is_also_where_edits_make_no_sense(log: tuple[Entry, ...]) -> None:
    view = View.fold(())
    for entry in log:
        view = view.append(entry)
        assert plan_elisions(view, NOW, HASTY) == scratch(view, NOW, HASTY)


def test_what_a_person_brought_back_is_proposed_no_longer() -> None:
    growing = Growing(HASTY)
    for _ in range(4):
        growing.step("use", "read_file", "a.py", "a line of text\n" * 20, False)
    growing.check(NOW)
    growing.add(Restore(entries=(name(1),)))  # the oldest result, before anything left it out
    growing.check(NOW)
    assert name(1) not in [s.elided.entry for s in plan_elisions(growing.view, NOW, HASTY).savings]


def test_what_was_pinned_and_is_no_longer_is_proposed_again() -> None:
    growing = Growing(HASTY)
    for _ in range(4):
        growing.step("use", "run_shell_command", "", "a line of text\n" * 20, False)
    growing.add(Pin(entries=(name(1),)))
    growing.check(NOW)
    pin = name(growing.view.n - 1)
    growing.add(Restore(entries=(pin,)))
    growing.check(NOW)
    assert name(1) in [s.elided.entry for s in plan_elisions(growing.view, NOW, HASTY).savings]


def test_the_next_plan_takes_no_longer_because_the_session_is_long() -> None:
    """By the work done, not by a clock alone: ten times the session, less than thrice the time."""

    def took(uses: int) -> float:
        growing = Growing(ElisionRules(keep_reads=2))
        for number in range(uses):
            path = f"src/file_{number % (uses // 4)}.py"
            growing.step("use", "read_file", path, "ok", False)
            growing.step("use", "run_shell_command", "", "ok", False)
        plan_elisions(growing.view, NOW, growing.rules)
        best = 1.0
        for _ in range(20):
            growing.step("use", "read_file", "src/file_1.py", "ok", False)
            began = time.perf_counter()
            plan_elisions(growing.view, NOW, growing.rules)
            best = min(best, time.perf_counter() - began)
        return best

    assert took(3_000) < 3 * took(300)
