"""Carries out `todo`: the list of steps that the model works through, as the log keeps it."""

from __future__ import annotations

from typing import Literal

from recollect.snapshot.plan_steps import MAX_STEPS, PlanStep, format_steps
from recollect.text import one_line
from recollect.tools.builtin import TodoItem, TodoStatus
from recollect.tools.tool import ToolFailed

MAX_ITEM = 240  # characters
_STEP_STATUS: dict[TodoStatus, Literal["open", "doing", "done"]] = {
    "pending": "open",
    "in_progress": "doing",
    "completed": "done",
}


def write_todo(items: tuple[TodoItem, ...]) -> str:
    if len(items) > MAX_STEPS:
        raise ToolFailed(f"a list has at most {MAX_STEPS} items; join those that belong together")
    steps: list[PlanStep] = []
    for number, item in enumerate(items, 1):
        text = one_line(item.content, MAX_ITEM)
        if not text:
            raise ToolFailed(f"item {number} is empty; say what is to be done")
        steps.append(PlanStep(text, _STEP_STATUS[item.status]))
    doing = [number for number, item in enumerate(items, 1) if item.status == "in_progress"]
    if len(doing) > 1:
        shown = ", ".join(map(str, doing[:8]))
        raise ToolFailed(f"items {shown} are all in_progress; one thing at a time")
    if not steps:
        return "The list is empty."
    done = sum(step.status == "done" for step in steps)
    return "\n".join((f"{done} of {len(steps)} done", *format_steps(tuple(steps))))
