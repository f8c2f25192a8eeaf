"""What the next request leaves out, by rule: the edits that its preparation made, and why.

The edits are those of the code that sends, so that a forecast never differs from what happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recollect.entries import Elide, Message, ToolResult
from recollect.view.elision_plan import ElisionPlan
from recollect.view.view import View


class PlannedElisions(NamedTuple):
    """What a rule would leave out of the next request."""

    things: int
    tokens: int
    of: dict[str, int]  # tokens by file, or by tool; the largest first
    why_now: str = ""


def edits_added(prepared: View, stored: View) -> tuple[Elide, ...]:
    """The elisions that a prepared request has beyond those that are stored."""
    new = prepared.log.entries[stored.n : prepared.n]
    return tuple(entry.body for entry in new if isinstance(entry.body, Elide))


def name_subjects(view: View, plan: ElisionPlan, edits: Iterable[Elide]) -> dict[str, str]:
    """What each entry that is left out holds: a file, or the output of a tool."""
    known = {saving.elided.entry: saving.what for saving in plan.savings}
    for edit in edits:
        for what in edit.items:
            position = view.log.position(what.entry, view.n)
            body = view.log.entries[position].body if position is not None else None
            parts = body.parts if isinstance(body, Message) else ()
            tools = [part.name for part in parts if isinstance(part, ToolResult)]
            known.setdefault(what.entry, next(iter(tools), "a message"))
    return known


def planned_by_rule(
    edits: Iterable[Elide], subjects: Mapping[str, str]
) -> dict[str, PlannedElisions]:
    found: dict[str, PlannedElisions] = {}
    for edit in edits:
        before = found.get(edit.rule, PlannedElisions(0, 0, {}))
        of = Counter(before.of)
        for what in edit.items:
            of[subjects.get(what.entry, "")] += what.tokens
        things = before.things + len(edit.items)
        why = edit.reason or before.why_now
        found[edit.rule] = PlannedElisions(things, of.total(), dict(of.most_common()), why)
    return found
