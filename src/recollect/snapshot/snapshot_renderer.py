"""`render_snapshot`: a ledger as a `<state_snapshot>` within a budget, whatever the ledger holds.

The user's directives come first, word for word as long as they fit their share; then the goal, a
model's prose, open failures, the plan and recent actions; the rest goes to files and names by
value. A larger budget keeps more. Every budget of at least 200 is kept.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from recollect.snapshot import section_texts
from recollect.snapshot.code_names import find_names
from recollect.snapshot.file_section import format_section
from recollect.snapshot.ledger import Ledger
from recollect.snapshot.name_selection import select_names
from recollect.snapshot.snapshot_format import Snapshot, write_snapshot
from recollect.text import clip_middle

# The largest share of the budget for directives; and of the rest for each of the others. Files and
# names get what these leave.
_DIRECTIVES = 0.6
_GOAL, _KNOWLEDGE, _FAILURES, _PLAN, _ACTIONS = 0.02, 0.08, 0.05, 0.06, 0.10
_COMMANDS, _QUOTED = 0.03, 0.08
_WRITTEN = 0.25  # for a model's prose
_TAGS = 320  # characters of all tags together
_SMALL = 1_200  # characters; below this there are no shares
_SECTION_PRIORITY: tuple[tuple[str, Callable[[Ledger, int], str]], ...] = (
    ("user_directives", section_texts.write_directives),
    ("overall_goal", section_texts.write_goal),
    ("current_plan", section_texts.write_plan),
    ("open_questions", section_texts.write_failures),
    ("recent_actions", section_texts.write_actions),
)
_MIN_SECTION = 40  # characters; a section gets no less room than this


def render_snapshot(ledger: Ledger, budget: int, measure: Callable[[str], int] = len) -> str:
    """A whole `<state_snapshot>` that measures at most `budget`."""
    if measure is len:
        return _render_within(ledger, budget)
    size, best = budget, ""
    for _ in range(10):
        text = _render_within(ledger, size)
        measured = max(1, measure(text))
        if measured <= budget:
            best = max(best, text, key=len)
            if measured > 0.97 * budget or len(text) < 0.9 * size:
                break
            size = min(int(size * budget / measured * 0.99), size * 4)
        else:
            size = min(int(size * budget / measured * 0.98), size - 1)
    return best or write_snapshot(Snapshot())


def _render_within(ledger: Ledger, size: int) -> str:
    """Like `render_snapshot`, measured in characters."""
    if size < _SMALL:
        return _render_small(ledger, size)
    fixed = _render_sentences(ledger, size)
    room = size - len(write_snapshot(fixed)) - 60
    for _ in range(6):
        if room < _MIN_SECTION:
            break
        text = write_snapshot(_add_names(ledger, fixed, room))
        if len(text) <= size:
            return text
        room -= len(text) - size + 8
    text = write_snapshot(fixed)
    return text if len(text) <= size else _render_small(ledger, size)


def _render_sentences(ledger: Ledger, size: int) -> Snapshot:
    directives = section_texts.write_directives(ledger, int((size - _TAGS) * _DIRECTIVES))
    room = size - _TAGS - len(directives)

    def share(part: float) -> int:
        given = int(room * part)
        return given if given >= _MIN_SECTION else 0

    written = share(_WRITTEN) if ledger.written else 0
    more = written // 4
    lines: list[str] = []
    if known := share(_KNOWLEDGE):
        lines += section_texts.write_knowledge(ledger, known, written)
    if quoted := share(_QUOTED):
        lines += section_texts.write_quotations(ledger, quoted)
    lines.append(section_texts.write_commands(ledger, share(_COMMANDS)))
    return Snapshot(
        overall_goal=section_texts.write_goal(ledger, max(share(_GOAL), 160) + more),
        user_directives=directives,
        key_knowledge="\n".join(lines).strip("\n"),
        recent_actions=section_texts.write_actions(ledger, share(_ACTIONS)),
        current_plan=section_texts.write_plan(ledger, share(_PLAN) + more),
        open_questions=section_texts.write_failures(ledger, share(_FAILURES) + more),
    )


def _add_names(ledger: Ledger, fixed: Snapshot, room: int) -> Snapshot:
    notes = ledger.written.file_system_state.strip() if ledger.written else ""
    notes = clip_middle(notes, room // 5)
    standing = find_names("\n".join((write_snapshot(fixed), notes)))
    selected = select_names(ledger, room - len(notes) - len(section_texts.NAMES) - 2, standing)
    loose = section_texts.NAMES + " ".join(selected.loose) if selected.loose else ""
    return msgspec.structs.replace(
        fixed,
        key_knowledge="\n".join(text for text in (fixed.key_knowledge, loose) if text),
        file_system_state=format_section(selected.files, selected.groups, notes),
    )


def _render_small(ledger: Ledger, size: int) -> str:
    """Without room for shares: one section after the other, the directives first."""
    kept = Snapshot()
    for name, write in _SECTION_PRIORITY:
        room = size - len(write_snapshot(kept)) - 2 * len(name) - 8
        while room >= _MIN_SECTION:
            more = msgspec.structs.replace(kept, **{name: write(ledger, room)})
            excess = len(write_snapshot(more)) - size
            if excess <= 0:
                kept = more
                break
            room -= max(8, excess)  # escaping made it longer
    return write_snapshot(kept)
