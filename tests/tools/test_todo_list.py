"""The list of steps: shown to the model, and read by the snapshot."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.plan_steps import PlanStep, apply_plan_call, parse_steps
from recollect.snapshot.session_facts import collect_facts
from recollect.testing import call, model, result, user
from recollect.toolkinds import classify_tool
from recollect.tools.builtin import todo
from tests.tools.calls import made, text, view

STATUSES = st.sampled_from(["pending", "in_progress", "completed", "cancelled", "blocked"])
ITEMS = st.lists(
    st.fixed_dictionaries({"content": st.text(max_size=30)}, optional={"status": STATUSES})
)


def test_a_list_is_shown_with_its_marks() -> None:
    items = [
        {"content": "read", "status": "completed"},
        {"content": "write\nit", "status": "in_progress", "activeForm": "writing"},
        {"content": "test"},
    ]
    assert text(made(todo, items=items)) == "1 of 3 done\n[x] read\n[>] write it\n[ ] test"


def test_a_cancelled_step_is_neither_done_nor_to_be_done() -> None:
    items = [
        {"content": "read", "status": "completed"},
        {"content": "write", "status": "cancelled"},
        {"content": "ship", "status": "blocked"},
    ]
    shown = text(made(todo, items=items))
    assert shown == "1 of 2 done, 1 cancelled\n[x] read\n[-] write\n[!] ship"
    steps = parse_steps(shown)
    assert [step.is_ahead for step in steps] == [False, False, True]


def test_the_snapshot_reads_our_list() -> None:
    items = [{"content": "read", "status": "completed"}, {"content": "test", "status": "pending"}]
    asked = call("todo", items=items)
    answer = result(asked, text(made(todo, items=items)))
    assert classify_tool(todo.name) == "plan"
    facts = collect_facts(view(user("go on"), model("", asked), answer).entries)
    assert facts.steps == (PlanStep("read", "done"), PlanStep("test", "open"))


@given(ITEMS)
def test_what_is_shown_is_what_the_snapshot_understands_of_the_call(
    items: list[dict[str, str]],
) -> None:
    output = made(todo, items=items)
    doing = sum(item.get("status") == "in_progress" for item in items)
    if output.is_error:
        understood = apply_plan_call((), {"items": items})
        assert doing > 1 or len(items) > 60 or len(understood) < len(items)
    elif items:
        assert parse_steps(text(output)) == apply_plan_call((), {"items": items})


@pytest.mark.parametrize(
    "items",
    [
        [{"content": "a", "status": "started"}],
        [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}],
        [{"content": " \n "}],
        [{"status": "pending"}],
        [{"content": "a"}] * 61,
        [{"content": 5}],
        ["a"],
        "a",
        {"content": "a"},
    ],
)
def test_a_list_that_makes_no_sense_is_refused_with_a_reason(items: object) -> None:
    output = made(todo, items=items)
    assert output.is_error
    assert text(output).startswith("Error: ")
    assert len(text(output)) < 300


def test_a_list_may_be_emptied() -> None:
    assert text(made(todo, items=[])) == "The list is empty."


def test_the_schema_lists_the_statuses_without_references() -> None:
    schema = json.loads(todo.declaration.parameters)
    item = schema["properties"]["items"]["items"]
    statuses = ["blocked", "cancelled", "completed", "in_progress", "pending"]
    assert sorted(item["properties"]["status"]["enum"]) == statuses
    assert "$ref" not in todo.declaration.parameters
