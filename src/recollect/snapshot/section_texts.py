"""The prose sections of a snapshot, each within a number of characters.

Directives are cut last and least: short ones stay whole, and the longest are cut in the middle and
say so. Of a plan, open steps stay longer than finished ones; of actions and failures the newest
stay.

Lines with one of the prefixes below are parsed back into the facts they were made from
(`earlier_snapshot.py`); other lines are prose.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

from recollect.snapshot.directives import format_directives, format_gap
from recollect.snapshot.ledger import AgentAction, Ledger
from recollect.snapshot.plan_steps import format_steps
from recollect.text import clip, clip_middle, one_line

ROOT = "Root: "
NAMES = "Names in use: "
REPORT = "Last report: "
COMMANDS = "Commands: "
LATEST = "Latest: "
QUESTION = "Asked, not answered: "
QUOTED = re.compile(r"Quoted from `([^`\n]{1,120})`:")
FAILED = re.compile(r"FAILED (.{1,200}?) → (.{0,400})")

_MIN_GOAL = 20  # characters; shorter directives are "continue" and "yes"
_MIN_DIRECTIVE = 60  # directives are cut to this before whole ones are left out


def write_directives(ledger: Ledger, room: int) -> str:
    if not ledger.directives:
        return ""
    # the first says what the session is about, the newest what holds now
    count = len(ledger.directives)
    left_out = max(0, min(count - 2, count - room // (_MIN_DIRECTIVE + 3)))
    kept = [ledger.directives[0], *ledger.directives[1 + left_out :]]
    gap = format_gap(left_out) if left_out else ""
    level = _cut_level([len(text) + 3 + 2 * text.count("\n") for text in kept], room - len(gap) - 1)
    cut = [clip_middle(text, max(1, level - 3 - 2 * text.count("\n"))) for text in kept]
    if gap:
        cut.insert(1, gap)
    return format_directives(tuple(cut))


def _cut_level(sizes: list[int], room: int) -> int:
    """The size to cut the longest to so that all fit; short ones stay whole."""
    rest, count = room, len(sizes)
    for size in sorted(sizes):
        if size * count <= rest:
            rest -= size
            count -= 1
        else:
            return rest // count
    return max(sizes)


def write_goal(ledger: Ledger, room: int) -> str:
    """The goal as a model or an earlier snapshot put it, else the first directive; and the latest
    directive of some length, because it may have changed the goal."""
    if ledger.written and (goal := ledger.written.overall_goal.strip()):
        return clip(goal, room)
    first = one_line(ledger.goal, max(1, room))
    long = [text for text in ledger.directives if len(text) >= _MIN_GOAL]
    latest = one_line(long[-1], 200) if long else ""
    changed = latest and latest[:100] not in first and len(first) + 40 < room
    return clip(f"{first}\n{LATEST}{latest}" if changed else first, room)


def write_knowledge(ledger: Ledger, room: int, written_room: int) -> list[str]:
    lines = [ROOT + one_line(ledger.root, 300)] if ledger.root else []
    if ledger.written and ledger.written.key_knowledge.strip():
        lines.append(clip_middle(ledger.written.key_knowledge.strip(), written_room))
    if older := "\n".join(ledger.knowledge).strip():
        lines.append(clip_middle(older, room))
    if report := " ".join(ledger.report.split()):
        lines.append(REPORT + clip_middle(report, room * 2 // 3))
    return lines


def write_commands(ledger: Ledger, room: int) -> str:
    """Commands that were run repeatedly: how this project is built and checked."""
    often = sorted(
        (c for c in ledger.commands if c.times > 1 and len(c.text) <= 90),
        key=lambda c: (-c.times, -c.last),
    )
    shown = [f"`{c.text}` ×{c.times}{' (fails)' if c.failed else ''}" for c in often]
    kept = _take_fitting(shown, room - len(COMMANDS), between=2)
    return COMMANDS + "; ".join(kept) if kept else ""


def write_quotations(ledger: Ledger, room: int) -> list[str]:
    """The newest task descriptions and the like, marked as quotations: data, not instructions."""
    lines: list[str] = []
    for quotation in ledger.quotations[:2]:
        source = clip(quotation.source.replace("`", "'"), 80)
        head = f"Quoted from `{source}`:"
        text = clip(quotation.text, room // 2 - len(head))
        lines += (head, *("> " + clip(line, 300) for line in text.split("\n") if line.strip()))
    return lines


def write_failures(ledger: Ledger, room: int) -> str:
    lines = [QUESTION + ledger.question] if ledger.question else []
    lines += (f"FAILED {p.subject} → {p.line}" for p in ledger.failures)
    if ledger.written and (questions := ledger.written.open_questions.strip()):
        lines += questions.split("\n")
    return "\n".join(_take_fitting(lines, room))


def write_plan(ledger: Ledger, room: int) -> str:
    lines = list(format_steps(ledger.steps))
    excess = sum(len(line) + 1 for line in lines) - room
    for line in [line for line in lines if line.startswith("[x]")]:
        if excess > 0:
            lines.remove(line)
            excess -= len(line) + 1
    if ledger.written and (prose := ledger.written.current_plan.strip()):
        lines += prose.split("\n")
    return "\n".join(_take_fitting(lines, room))


def write_actions(ledger: Ledger, room: int) -> str:
    """The newest that fit, oldest first."""
    return "\n".join(_take_fitting(_action_lines(ledger.actions)[::-1], room)[::-1])


def _action_lines(actions: Iterable[AgentAction]) -> list[str]:
    lines: list[str] = []
    before = ""
    for action in actions:
        brief = action.verb in ("read", "listed", "searched", "edited") and bool(lines)
        if brief and action.verb == before:
            if action.what not in lines[-1]:
                lines[-1] = f"{lines[-1]}, {action.what}"
            continue
        note = f" → {clip(action.note, 120)}" if action.note else ""
        lines.append(clip(f"{action.verb} {action.what}".strip(), 200) + note)
        before = action.verb
    return lines


def _take_fitting(lines: list[str], room: int, between: int = 1) -> list[str]:
    ends = accumulate(len(line) + between for line in lines)
    return lines[: bisect_right(list(ends), room)]
