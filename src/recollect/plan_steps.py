"""The steps of a plan with their status, from todo tools and from lists in the agent's text.

A tool call with a whole list replaces the plan; one that adds or changes a single task changes it.
A list in a text is a plan if it has at least two numbered or checkbox lines. Steps are bounded in
number and length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from recollect.text import one_line

StepStatus: TypeAlias = Literal["done", "doing", "open", "cancelled", "blocked"]
MAX_STEPS = 60
_MAX_STEP = 240
_LISTS = ("todos", "plan", "items", "tasks", "steps", "newTodos")
_TEXTS = ("content", "step", "description", "title", "subject", "task", "text", "activeForm")
STATUS_KEYS = ("status", "state")
_NAMES: dict[StepStatus, str] = {
    "open": "pending open todo to_do not_started",
    "done": "completed complete done finished x",
    "doing": "in_progress inprogress doing active >",
    "cancelled": "cancelled canceled -",
    "blocked": "blocked !",
}
_STATUS = {name: status for status, names in _NAMES.items() for name in names.split()}
_NUMBERED = re.compile(r"^\s{0,8}(?:\d{1,3}[.)]|[-*] \[([ xX>~!-])\])\s+(\S.{2,})$")
_TAGGED = re.compile(r"\[(done|in progress|todo)\]\s{1,8}(?=\S)", re.I)  # as we tell models
_MARKS: dict[StepStatus, str] = {
    "done": "[x]",
    "doing": "[>]",
    "open": "[ ]",
    "cancelled": "[-]",
    "blocked": "[!]",
}
_WRITTEN = re.compile(r"^\[([ x>!-])\] (.+)$")


class PlanStep(NamedTuple):
    text: str
    status: StepStatus = "open"

    @property
    def is_ahead(self) -> bool:
        """Whether something is still to be done about it."""
        return self.status not in ("done", "cancelled")


def apply_plan_call(steps: tuple[PlanStep, ...], value: Mapping[str, Any]) -> tuple[PlanStep, ...]:
    """The plan after a call of a plan tool with these arguments."""
    for key in _LISTS:
        if isinstance(value.get(key), list):
            found = (_parse_step(item) for item in value[key][:MAX_STEPS])
            return tuple(step for step in found if step is not None)
    number = str(value.get("taskId", value.get("id", ""))).lstrip("#")
    if number.isascii() and number.isdigit() and len(number) < 6:
        return _change_step(steps, int(number), value)
    added = _parse_step(value)
    return (*steps, added)[:MAX_STEPS] if added is not None else steps


def _parse_step(item: object) -> PlanStep | None:
    if isinstance(item, str):
        item = {"content": item}
    if not isinstance(item, Mapping):
        return None
    key = find_step_text(item)
    return PlanStep(one_line(item[key], _MAX_STEP), _parse_status(item)) if key else None


def find_step_text(item: Mapping[str, Any]) -> str:
    """The key under which an item has its text; empty if it has none."""
    texts = ((key, item.get(key)) for key in _TEXTS)
    return next((k for k, t in texts if isinstance(t, str) and one_line(t, _MAX_STEP)), "")


def name_status(given: object) -> StepStatus | None:
    """The status that a tool's word for it means; None if it is unknown."""
    if not isinstance(given, str) or len(given) > 40:
        return None
    name = given.strip().lower()
    return _STATUS.get(name) or _STATUS.get(name.replace("-", "_").replace(" ", "_"))


def _parse_status(item: Mapping[str, Any]) -> StepStatus:
    key = next((key for key in STATUS_KEYS if key in item), "")
    return name_status(item.get(key)) or "open"


def _change_step(
    steps: tuple[PlanStep, ...], number: int, value: Mapping[str, Any]
) -> tuple[PlanStep, ...]:
    if not 1 <= number <= len(steps):
        return steps
    before = steps[number - 1]
    has_status = any(key in value for key in STATUS_KEYS)
    status = _parse_status(value) if has_status else before.status
    text = next((t for key in ("subject", "content") if isinstance(t := value.get(key), str)), "")
    after = PlanStep(one_line(text, _MAX_STEP) or before.text, status)
    return (*steps[: number - 1], after, *steps[number:])


def _listed_step(line: str) -> PlanStep | None:
    match = _NUMBERED.match(line[:2000])
    if match is None:
        return None
    tag = _TAGGED.match(match[2])
    mark = match[1] or (tag[1].replace(" ", "_") if tag else "")
    text = match[2][tag.end() :] if tag else match[2]
    return PlanStep(one_line(text, _MAX_STEP), _STATUS.get(mark.lower(), "open"))


def is_step(line: str) -> bool:
    return _NUMBERED.match(line[:2000]) is not None


def find_steps(text: str) -> tuple[PlanStep, ...]:
    """The longest run of numbered or checkbox lines in a text, if it has at least two."""
    best: list[PlanStep] = []
    run: list[PlanStep] = []
    for line in text[:60_000].split("\n"):
        if step := _listed_step(line):
            run.append(step)
        elif line.strip() and not line.startswith((" ", "\t")):
            run = []
        if len(run) > len(best):
            best = run
    return tuple(best[:MAX_STEPS]) if len(best) >= 2 else ()


def format_steps(steps: tuple[PlanStep, ...]) -> tuple[str, ...]:
    return tuple(f"{_MARKS[step.status]} {step.text}" for step in steps)


def parse_steps(text: str) -> tuple[PlanStep, ...]:
    """The steps of a `current_plan` section that we wrote, or the list in one a model wrote."""
    lines = text.split("\n")[: 4 * MAX_STEPS]
    found = [m for line in lines if (m := _WRITTEN.match(line[:400]))]
    if found:
        return tuple(PlanStep(m[2], _STATUS.get(m[1], "open")) for m in found)
    return tuple(step for line in lines if (step := _listed_step(line)))[:MAX_STEPS]
