"""The steps of a plan, from tools and from lists."""

from __future__ import annotations

import pytest
from hypothesis import given

from recollect.entries import Compaction
from recollect.plan_steps import (
    PlanStep,
    apply_plan_call,
    find_steps,
    format_steps,
    parse_steps,
)
from recollect.snapshot.snapshot_format import Snapshot, parse_snapshot, write_snapshot
from recollect.testing import call, model, result, user
from tests.snapshot.session_paths import did, edit, read, sections_of, snapshot_of
from tests.strategies import json_values, text


def test_the_todo_lists_of_several_agents_are_understood() -> None:
    claude = {"todos": [{"content": "a", "status": "completed"}, {"content": "b"}]}
    codex = {"plan": [{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"}]}
    gemini = {"todos": [{"description": "a", "status": "completed"}, {"description": "b"}]}
    for arguments in (claude, codex, gemini):
        assert apply_plan_call((), arguments) == (PlanStep("a", "done"), PlanStep("b", "open"))


def test_single_tasks_are_added_and_changed() -> None:
    steps = apply_plan_call((), {"subject": "a"})
    steps = apply_plan_call(steps, {"subject": "b"})
    steps = apply_plan_call(steps, {"taskId": "1", "status": "completed"})
    steps = apply_plan_call(steps, {"taskId": "2", "status": "in_progress"})
    steps = apply_plan_call(steps, {"taskId": "9", "status": "completed"})
    assert steps == (PlanStep("a", "done"), PlanStep("b", "doing"))


def test_a_numbered_list_in_the_text_of_the_agent_is_a_plan() -> None:
    said = "I will:\n1. read the code\n   carefully\n2. fix it\n\nThat is all.\n1. no plan"
    assert find_steps(said) == (PlanStep("read the code"), PlanStep("fix it"))
    assert "read the code\n  fix it" in snapshot_of(user("Go."), model(said), *read("a.py", "x"))


@pytest.mark.parametrize(
    "report",
    [
        "All four are done:\n1. parser\n2. lexer\n3. tests\n4. docs",
        "## Summary\n\n1. Added the parser\n2. Fixed the lexer",
        "1. ✅ Added the parser\n2. ✅ Fixed the lexer",
        "Implemented and tested:\n- [x] the parser\n- [x] the lexer",
        "四项都已完成:\n1. 解析器\n2. 词法器",
    ],
)
def test_a_list_in_a_report_of_finished_work_is_not_an_open_plan(report: str) -> None:
    sections = parse_snapshot(snapshot_of(user("Do the four steps."), model(report)))
    assert sections is not None
    assert sections.current_plan == ""


REPORTS = {
    "English": "Here is what changed:\n1. The client retries.\n2. Empty lines do no harm.",
    "German": "Alle vier Schritte sind erledigt:\n1. Retry ergänzt.\n2. Parser repariert.",
    "French": "Tout est terminé :\n1. Nouvel essai ajouté.\n2. Analyseur réparé.",
    "Spanish": "Todo está listo:\n1. Reintento añadido.\n2. Analizador corregido.",
    "Russian": "Все шаги готовы:\n1. Добавлен повтор.\n2. Парсер исправлен.",
    "Japanese": "すべて終わりました:\n1. 再試行を追加しました。\n2. パーサーを直しました。",
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_a_list_that_ends_a_turn_of_work_is_a_report_in_any_language(report: str) -> None:
    work = [user("Go."), *edit("lib/client.py", "a", "def retry(): ...", 1), model(report)]
    more = [user("Thanks."), *edit("lib/cache.py", "a", "def cache(): ...", 2), model("Ok.")]
    assert sections_of(*work).current_plan == ""
    assert sections_of(*work, *more).current_plan == ""
    looked = [
        user("Go."),
        *read("lib/client.py", "x"),
        model(report),
        user("Thanks."),
        model("Ok."),
    ]
    assert sections_of(*looked).current_plan == ""


PLANS = {
    "German": "Ich gehe so vor:\n1. Retry ergänzen.\n2. Parser reparieren.",
    "Russian": "План:\n1. Добавить повтор.\n2. Исправить парсер.",
    "Japanese": "次のように進めます:\n1. 再試行を追加する。\n2. パーサーを直す。",
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_list_that_work_follows_in_its_turn_is_a_plan_in_any_language(plan: str) -> None:
    first, second = (line.partition(" ")[2] for line in plan.split("\n")[1:])
    shell = call("Bash", id="b", command="make")
    for said in ((model(plan), *edit("a.py", "a", "b")), (model(plan, shell), result(shell, "ok"))):
        announced = sections_of(user("Go."), *said, model("Ok.")).current_plan
        assert f"Announced:\n  {first}\n  {second}" in announced


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_proposal_is_a_plan_once_the_next_turn_carries_it_out(plan: str) -> None:
    proposed = [user("Go."), *read("lib/client.py", "x"), model(plan), user("Ja.")]
    assert sections_of(*proposed).current_plan == ""
    done = sections_of(*proposed, *edit("lib/client.py", "a", "def retry(): ...", 2)).current_plan
    assert "Done since it was announced: edited lib/client.py" in done


def test_open_boxes_are_a_plan_wherever_they_stand() -> None:
    status = "Fertig ist:\n- [x] retry\n- [x] parser, fixed and completed\n- [ ] the docs"
    work = [user("Go."), *edit("lib/client.py", "a", "def retry(): ...", 1), model(status)]
    plan = sections_of(*work, user("Thanks."), model("Ok.")).current_plan
    assert "Announced:\n  the docs" in plan
    assert "parser" not in plan


def test_the_statuses_that_a_model_wrote_into_a_plan_are_read_back() -> None:
    wrote = (
        "1. [DONE] the lexer\n2. [IN PROGRESS] the parser\n3. [TODO] the docs\nNext: empty rows."
    )
    assert parse_steps(wrote) == (
        PlanStep("the lexer", "done"),
        PlanStep("the parser", "doing"),
        PlanStep("the docs"),
    )
    first = write_snapshot(Snapshot(current_plan=wrote))
    again = sections_of(Compaction(status="COMPRESSED", snapshot=first), user("Go on."))
    assert again.current_plan.split("\n") == [
        "- [x] the lexer",
        "- [>] the parser",
        "- [ ] the docs",
        "- Next: empty rows.",
    ]


def test_a_plan_that_was_announced_says_what_was_done_since() -> None:
    said = "I will:\n1. write the parser\n2. write the tests"
    text_ = snapshot_of(user("Go."), model(said), *edit("lib/parser.py", "a", "def parse(): ..."))
    assert "Done since it was announced: edited lib/parser.py" in text_


def test_check_marks_tell_the_status() -> None:
    assert find_steps("- [x] one step\n- [ ] two step") == (
        PlanStep("one step", "done"),
        PlanStep("two step"),
    )


def test_a_single_numbered_line_is_not_a_plan() -> None:
    assert find_steps("1. only this") == ()


def test_the_newest_list_of_a_tool_replaces_the_one_before() -> None:
    first = call("TodoWrite", id="1", todos=[{"content": "old step", "status": "pending"}])
    second = call("TodoWrite", id="2", todos=[{"content": "new step", "status": "in_progress"}])
    text_ = snapshot_of(user("Go."), *did(first, "ok"), *did(second, "ok"))
    assert "[>] new step" in text_
    assert "old step" not in text_


def test_done_steps_give_way_before_open_ones() -> None:
    todos = [{"content": f"step {n} " + "x" * 60, "status": "completed"} for n in range(20)]
    todos.append({"content": "the open step", "status": "pending"})
    text_ = snapshot_of(user("Go."), *did(call("TodoWrite", todos=todos), "ok"), budget=700)
    assert "[ ] the open step" in text_
    assert "step 0 " + "x" * 60 not in text_


@given(json_values)
def test_any_arguments_give_a_plan_whose_lines_are_read_back(value: object) -> None:
    arguments = value if isinstance(value, dict) else {"todos": [value, {"content": value}]}
    steps = apply_plan_call((), arguments)
    assert parse_steps("\n".join(format_steps(steps))) == steps


@given(text)
def test_any_text_can_be_searched_for_a_plan(said: str) -> None:
    assert len(find_steps(said)) != 1
