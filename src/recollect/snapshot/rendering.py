"""`render`: a ledger as a `<state_snapshot>` that keeps to its budget, whatever the ledger holds.

The person's directives come first, word for word as long as they fit into their share; then the
goal, what a model wrote, open failures, the plan, recent actions; what is left goes to files and
names by value. A larger budget keeps more. Every budget from 200 on is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from recollect.snapshot import prose
from recollect.snapshot.choosing import choose
from recollect.snapshot.filelines import section
from recollect.snapshot.labels import NAMES
from recollect.snapshot.ledger import Ledger
from recollect.snapshot.names import names_in
from recollect.snapshot.sections import Snapshot, write
from recollect.snapshot.texts import clip_middle

# Of the budget, the most that directives may take; of the rest, the most that the others may.
# What they all leave goes to files and names.
_DIRECTIVES = 0.6
_GOAL, _KNOWLEDGE, _PROBLEMS, _PLAN, _ACTIONS = 0.02, 0.08, 0.05, 0.06, 0.10
_COMMANDS, _QUOTED = 0.03, 0.08
_WRITTEN = 0.25  # for what a model wrote
_TAGS = 320  # characters of all tags together
_SMALL = 1_200  # characters below which there are no shares
_IN_NEED: tuple[tuple[str, Callable[[Ledger, int], str]], ...] = (
    ("user_directives", prose.directives),
    ("overall_goal", prose.goal),
    ("current_plan", prose.plan),
    ("open_questions", prose.problems),
    ("recent_actions", prose.actions),
)
_WORTH_IT = 40  # characters below which no room is given to a section


def render(ledger: Ledger, budget: int, measure: Callable[[str], int] = len) -> str:
    """A whole `<state_snapshot>` of which `measure` says at most `budget`."""
    if measure is len:
        return _composed(ledger, budget)
    size, best = budget, ""
    for _ in range(10):
        text = _composed(ledger, size)
        measured = max(1, measure(text))
        if measured <= budget:
            best = max(best, text, key=len)
            if measured > 0.97 * budget or len(text) < 0.9 * size:
                break
            size = min(int(size * budget / measured * 0.99), size * 4)
        else:
            size = min(int(size * budget / measured * 0.98), size - 1)
    return best or write(Snapshot())


def _composed(ledger: Ledger, size: int) -> str:
    """As `render`, counted in characters."""
    if size < _SMALL:
        return _few(ledger, size)
    fixed = _sentences(ledger, size)
    room = size - len(write(fixed)) - 60
    for _ in range(6):
        if room < _WORTH_IT:
            break
        text = write(_with_names(ledger, fixed, room))
        if len(text) <= size:
            return text
        room -= len(text) - size + 8
    text = write(fixed)
    return text if len(text) <= size else _few(ledger, size)


def _sentences(ledger: Ledger, size: int) -> Snapshot:
    said = prose.directives(ledger, int((size - _TAGS) * _DIRECTIVES))
    room = size - _TAGS - len(said)

    def share(part: float) -> int:
        given = int(room * part)
        return given if given >= _WORTH_IT else 0

    written = share(_WRITTEN) if ledger.written else 0
    more = written // 4
    lines = prose.knowledge(ledger, share(_KNOWLEDGE), written) if share(_KNOWLEDGE) else []
    lines += prose.quotations(ledger, share(_QUOTED)) if share(_QUOTED) else []
    return Snapshot(
        overall_goal=prose.goal(ledger, max(share(_GOAL), 160) + more),
        user_directives=said,
        key_knowledge="\n".join((*lines, prose.commands(ledger, share(_COMMANDS)))).strip("\n"),
        recent_actions=prose.actions(ledger, share(_ACTIONS)),
        current_plan=prose.plan(ledger, share(_PLAN) + more),
        open_questions=prose.problems(ledger, share(_PROBLEMS) + more),
    )


def _with_names(ledger: Ledger, fixed: Snapshot, room: int) -> Snapshot:
    notes = ledger.written.file_system_state.strip() if ledger.written else ""
    notes = clip_middle(notes, room // 5)
    standing = names_in("\n".join((write(fixed), notes)))
    choice = choose(ledger, room - len(notes) - len(NAMES) - 2, standing)
    loose = NAMES + " ".join(choice.loose) if choice.loose else ""
    return msgspec.structs.replace(
        fixed,
        key_knowledge="\n".join(text for text in (fixed.key_knowledge, loose) if text),
        file_system_state=section(choice.files, choice.passages, notes),
    )


def _few(ledger: Ledger, size: int) -> str:
    """Where there is no room for shares: one section after the other, the directives first."""
    kept = Snapshot()
    for name, told in _IN_NEED:
        room = size - len(write(kept)) - 2 * len(name) - 8
        while room >= _WORTH_IT:
            more = msgspec.structs.replace(kept, **{name: told(ledger, room)})
            excess = len(write(more)) - size
            if excess <= 0:
                kept = more
                break
            room -= max(8, excess)  # escaping made it longer than it was told
    return write(kept)
