"""Rules of users: what they can leave out of a view, and what they cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given

from recollect.entries import (
    Entry,
    InlineData,
    Message,
    Pin,
    Restore,
    Text,
    ToolCall,
    ToolResult,
    handle_of,
)
from recollect.errors import BadInput
from recollect.view.custom_rules import CustomRule, RuleFunction
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.view import View, ViewItem
from tests.view.growing_log import NOW, GrowingLog
from tests.view.logs import logs, name

REPORT = "It rains in Bergen. " * 40


def everything(view: View, now: int) -> Iterator[tuple[ViewItem, str]]:
    """The greediest rule there can be."""
    yield from ((item, "old") for item in view.items)


def rules_of(plan: RuleFunction, rule: str = "mine") -> ElisionRules:
    return ElisionRules(min_saving=1, custom=(CustomRule(rule, plan),))


GREEDY = rules_of(everything)


def test_a_rule_leaves_out_what_it_names_and_the_placeholder_says_what_and_how_to_get_it() -> None:
    def old_weather(view: View, now: int) -> Iterable[tuple[str, str]]:
        return [(report, "a forecast of yesterday")]

    session = GrowingLog(rules_of(old_weather, "weather"))
    report = session.use("weather", {}, REPORT)
    kept = session.use("weather", {}, REPORT)
    (edit,) = session.plan().edits
    session.add(edit)
    assert (edit.rule, [what.entry for what in edit.items]) == ("weather", [report])
    shown = {item.entry.id: item.message for item in session.view.items}
    (result,) = shown[report].parts
    assert isinstance(result, ToolResult)
    tokens = sum(map(session.view.log.counter.text, ("weather", REPORT)))
    text = f"[recall {handle_of(report)}: weather: a forecast of yesterday, {tokens} tokens]"
    assert result.content == (Text(text=text),)
    assert shown[kept].parts[0].content[0].text == REPORT  # type: ignore[union-attr]


def test_a_rule_may_leave_out_texts_and_images_and_an_empty_reason_is_filled_in() -> None:
    session = GrowingLog(rules_of(lambda view, _: [(item, " ") for item in view.items]))
    picture = InlineData(mime="image/png", data=b"\x89PNG")
    session.add(Message(role="user", parts=(Text(text=REPORT), picture)))
    session.add(Message(role="user", parts=(Text(text="and now?"),)))
    session.add(*session.plan().edits)
    texts = [part.text for part in session.view.items[0].message.parts if isinstance(part, Text)]
    assert texts[0].endswith(f": mine: an earlier text, {len(REPORT) // 4} tokens]")
    assert ": mine: a file (image/png), " in texts[1]


def test_the_newest_message_and_the_initial_context_stay() -> None:
    session = GrowingLog(GREEDY)
    session.add(Message(role="user", parts=(Text(text=REPORT),), context="initial"))
    session.add(Message(role="user", parts=(Text(text=REPORT),)))
    assert session.plan().savings == ()


@given(logs())
def test_whatever_a_rule_names_no_pin_no_restored_message_and_no_call_is_left_out(
    log: tuple[Entry, ...],
) -> None:
    view = View.fold(log)
    plan = plan_elisions(view, NOW, GREEDY)
    protected = {*view.state.pins, *view.state.restored}
    for saving in plan.savings:
        message = view.log.find_message(saving.elided.entry, view.n)
        assert message is not None
        assert saving.elided.entry not in protected or saving.rule != "mine"
        assert not any(isinstance(message.parts[at], ToolCall) for at in saving.elided.parts)


@given(logs())
def test_a_rule_makes_no_orphan_saves_what_it_says_and_is_idempotent(
    log: tuple[Entry, ...],
) -> None:
    view = View.fold(log)
    plan = plan_elisions(view, NOW, GREEDY)
    assert plan.problems == ()
    edits = [Entry(name(500 + i), None, NOW, edit) for i, edit in enumerate(plan.edits)]
    smaller = view.append(*edits)
    assert _pairs(smaller) == _pairs(view)
    assert [item.entry.id for item in smaller.items] == [item.entry.id for item in view.items]
    assert view.tokens - smaller.tokens == plan.tokens
    assert smaller.problems == view.problems
    assert plan_elisions(smaller, NOW, GREEDY).savings == ()
    assert view.entries == log


def _pairs(view: View) -> list[tuple[str, str]]:
    """Every call and every result that the view shows, in order."""
    parts = [part for message in view.messages for part in message.parts]
    return [
        ("call", part.id) if isinstance(part, ToolCall) else ("result", part.call_id)
        for part in parts
        if isinstance(part, ToolCall | ToolResult)
    ]


def test_what_the_user_restored_is_not_left_out_again() -> None:
    session = GrowingLog(GREEDY)
    report, other = session.use("weather", {}, REPORT), session.use("weather", {}, REPORT)
    session.add(Message(role="user", parts=(Text(text="and now?"),)))
    session.add(*session.plan().edits)
    session.add(Restore(entries=(report,)), Restore(entries=(other,)), Pin(entries=(other,)))
    assert session.plan().savings == ()


def _raises(view: View, now: int) -> Iterator[tuple[str, str]]:
    yield view.items[0].entry.id, "before it fails"
    raise ValueError("no such town")


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (_raises, "mine failed and left nothing out: ValueError: no such town"),
        (lambda view, _: view.items, "pairs (item of the view, reason), not ViewItem("),
        (lambda view, _: [("e9", "old")], "named the entry 'e9', which is not in the session"),
        (lambda view, _: None, "mine failed and left nothing out: TypeError"),
    ],
)
def test_a_rule_that_fails_is_a_problem_of_the_plan_and_the_others_still_work(
    plan: RuleFunction, problem: str
) -> None:
    session = GrowingLog(rules_of(plan))
    for _ in range(7):
        session.use("read_file", {"path": "a.py"})
    made = session.plan()
    assert {saving.rule for saving in made.savings} == {"superseded-read"}
    (told,) = made.problems
    assert problem in told
    waiting = session.plan(rules=ElisionRules(min_saving=10**6, custom=session.rules.custom))
    assert (waiting.savings, waiting.problems) == ((), made.problems)


async def _async_rule(view: View, now: int) -> list[tuple[str, str]]:
    return []


@pytest.mark.parametrize(
    ("rule", "plan", "why"),
    [
        ("drop", everything, "'drop' exists already"),
        ("stale-shell", everything, "exists already; choose another name"),
        ("my rule", everything, "cannot name an elision rule"),
        ("", everything, "cannot name an elision rule"),
        ("mine", _async_rule, "is async; write a plain `def`"),
        ("mine", "drop", "is not a function"),
    ],
)
def test_what_cannot_be_a_rule_is_refused_with_the_reason(
    rule: str, plan: RuleFunction, why: str
) -> None:
    with pytest.raises(BadInput, match=why):
        CustomRule(rule, plan)
