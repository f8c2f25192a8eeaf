"""Sessions to compact, and a budget that they exceed."""

from __future__ import annotations

from recollect.compaction.budget import Budget
from recollect.compaction.proposal import Proposal
from recollect.compaction.view_reduction import with_edits
from recollect.entries import Body, Entry, Message
from recollect.testing import call, model, result, user
from recollect.view.curation import is_spoken
from recollect.view.view import View
from tests.view.logs import name

SMALL = Budget(window=8_192, threshold=4_000, target=3_000, snapshot=1_000)


def entries(*bodies: Body) -> list[Entry]:
    return [Entry(name(i), None, i * 1_000, body) for i, body in enumerate(bodies)]


def turns(count: int, *, size: int = 300) -> list[Body]:
    """Question, call, result and answer, again and again."""
    found: list[Body] = []
    for number in range(count):
        c = call("read_file", id=f"c{number}", path=f"src/file_{number}.py")
        found += [
            user(f"question {number}: what does file_{number}.py do?"),
            model(f"I look at file_{number}.py.", c),
            result(c, f"def function_{number}(): " + "x = 1; " * size),
            model(f"It defines function_{number}."),
        ]
    return found


def applied(view: View, proposal: Proposal) -> View:
    return with_edits(view, (proposal.compaction,), 0)


def is_prompt(body: Body) -> bool:
    return isinstance(body, Message) and is_spoken(body)
