"""The plan with the status that each step really has, and what is open.

Statuses come from a plan tool. Without one the newest list that the agent announced is quoted, with
what it did since. A list that ends a turn is a report, or a proposal to the user: a plan only if
its turn changed nothing and the next one did, or if its own boxes are open, in any language. Open
are the agent's unanswered question and the commands that failed and did not succeed since.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from recollect.plan_steps import PlanStep, find_steps, format_steps
from recollect.snapshot.quotes import Quote
from recollect.text import one_line
from recollect.work_journal import JournalItem, check_key, show_run

_FINISHED = re.compile(
    r"\b(?:done|completed?|finished|implemented|passing|pass(?:es|ed)?|summary|fixed"
    r"|added|created|updated|removed|renamed|wrote)\b|[✅✓✔☑]|完成",
    re.I,
)
_BOX = re.compile(r"^[ \t]{0,8}[-*] \[[ xX>~]\].{3,2000}$", re.M)
_MAX_OPEN, _RECENT = 12, 5
_ASKED, _FAILED = "Asked, not answered: ", "Failed last time: "
_FAILED_COMMAND = re.compile(rf"{_FAILED}`([^`]{{1,200}})`")


def quote_plan(steps: tuple[PlanStep, ...], items: Sequence[JournalItem]) -> Iterator[Quote]:
    if steps:
        for step, line in zip(steps, format_steps(steps), strict=True):
            yield Quote(line, weight=1.5 if step.is_ahead else 0.3)
        return
    oldest = max(0, len(items) // 2 - _RECENT)  # an older plan is out of date
    called = {item.turn: number for number, item in enumerate(items) if item.calls}
    changed = {item.turn for item in items if item.changes}
    for number in range(len(items) - 1, oldest - 1, -1):
        turn, said = items[number].turn, items[number].said
        proposal = turn not in changed and turn + 1 in changed
        followed = proposal or called.get(turn, -1) >= number
        listed = open_boxes(said) or (announced_steps(said) if followed else ())
        if listed:
            since = items[number:]
            done = dict.fromkeys(f"{c.verb} {c.path}" for item in since for c in item.changes)
            yield Quote("Announced:\n" + "\n".join(listed), items[number].entry, 2)
            yield Quote(f"Done since it was announced: {', '.join(done) or 'no file changed'}")
            return


def open_boxes(said: str) -> list[str]:
    """The steps that a list of boxes says are open."""
    boxes = find_steps("\n".join(_BOX.findall(said)))
    return [step.text for step in boxes if step.is_ahead]


def announced_steps(said: str) -> list[str]:
    """The steps of a list in the agent's words, unless they are a report of finished work."""
    steps = [step.text for step in find_steps(said) if step.is_ahead]
    if not steps or steps[0] not in said:
        return []
    before = "\n".join(filter(str.strip, said[: said.index(steps[0])].split("\n")[-4:]))
    finished = sum(_FINISHED.search(step) is not None for step in steps)
    return [] if _FINISHED.search(before) or 2 * finished > len(steps) else steps


def is_open(item: str, ran: set[str], *, answered: bool) -> bool:
    """Whether an item of an earlier snapshot is still open, given the commands run since."""
    failed = _FAILED_COMMAND.search(item)
    if failed is not None:
        return check_key(failed[1]) not in ran
    return not (answered and _ASKED in item)


def quote_open(items: Sequence[JournalItem]) -> Iterator[Quote]:
    last = items[-1] if items else None
    if last is not None and not last.acts and last.said.endswith(("?", "?")):
        question = last.said.rsplit("\n", 1)[-1]
        yield Quote(f"{_ASKED}{one_line(question, 600)}", last.entry, 2)
    failing: dict[str, Quote] = {}
    for item in items:
        for change in item.changes:
            failing.pop(check_key(f"edit {change.path}"), None)
        for run in item.runs:
            failing.pop(check_key(run.command), None)
            if run.outcome.failed:
                quote = Quote(f"{_FAILED}{show_run(run)}", item.entry)
                failing[check_key(run.command)] = quote
    yield from list(failing.values())[-_MAX_OPEN:]
