"""`build_snapshot_text`: a stretch of a session as a `<state_snapshot>` within a budget.

It is a working memory by quotation: what the user said, the tasks the user pointed to, what the
agent concluded, changed and failed at, the state of the work as tools reported it, the plan with
true statuses; names last. What a model wrote is kept in every section, and code adds the rest.
A larger budget keeps more, and at least nine tenths of it are used when there is that much to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from recollect.entries import Entry
from recollect.plan_steps import is_step
from recollect.snapshot.earlier_snapshot import count_left_out, earlier_directives, earlier_items
from recollect.snapshot.file_records import FileRecords
from recollect.snapshot.journal_quotes import JournalQuotes
from recollect.snapshot.model_snapshot import quote_written
from recollect.snapshot.plan_quotes import is_open, quote_open, quote_plan
from recollect.snapshot.quotes import (
    MIN_QUOTE,
    Quote,
    fit_quotes,
    format_item,
    parse_items,
    share_room,
)
from recollect.snapshot.session_facts import REFUSED_CALL, ROOT, SessionFacts, collect_facts
from recollect.snapshot.snapshot_format import SECTIONS, Snapshot, write_snapshot
from recollect.snapshot.task_texts import TaskTexts, find_tasks
from recollect.snapshot.work_state import WorkState, describe_state
from recollect.text import clean, one_line
from recollect.work_journal import check_key

# How the room is shared where there is more to say than it holds.
_DIRECTIVES, _WRITTEN, _TASKS, _STATE, _JOURNAL, _FILES = 40.0, 40.0, 3.0, 2.0, 5.0, 5.0
_GOAL, _PLAN, _OPEN, _REPORTS, _SUMMARIES, _EARLIER = 0.5, 1.0, 0.5, 0.4, 3.0, 1.5
_LONG, _EXCESS = 1_500, 3.0  # what a message of the user has beyond this weighs less: a paste
_CURRENT, _NAMED, _CLOSED, _OTHER = 3.0, 2.0, 0.3, 0.7  # weights of tasks
_TAGS = 330  # characters of all tags together
_MAX_GOAL, _ROUNDS, _ENOUGH = 400, 10, 0.97
_LATEST, _MIN_GOAL = "Latest: ", 20  # shorter words are "continue" and "yes"
_MIN_TASK = 130  # the title of a task, or more
_MIN_DIRECTIVE = 80  # characters; directives are cut to this before whole ones are left out
_LEFT_OUT = "- ({} more messages of the user are only in the log)"


class _Block(NamedTuple):
    """Quotations of one section that share room among themselves."""

    section: str
    weight: float
    quotes: Sequence[Quote]
    least: int = MIN_QUOTE  # characters; a quotation is rather left out than cut to less


def build_snapshot_text(
    entries: Iterable[Entry],
    budget: int,
    measure: Callable[[str], int] = len,
    *,
    root: str = "",
    written: Snapshot | None = None,
) -> str:
    """A whole `<state_snapshot>` that measures at most `budget`; `written` is a model's."""
    writer = _Writer(collect_facts(entries, root), written)
    size, best = budget, ""
    fits, exceeds = 0, 0  # the largest size that fits and the smallest that does not, so far
    for _ in range(_ROUNDS):
        text = writer.write(size)
        measured = max(1, measure(text))
        if measured <= budget:
            best, fits = max(best, text, key=len), size
            if measured >= _ENOUGH * budget or size > writer.demand:
                break
        else:
            exceeds = size
        guess = max(fits + 1, int(size * budget / measured * 0.995))
        size = min(guess, (fits + exceeds) // 2 + 1) if exceeds else min(guess, 4 * size + 1)
    return best or write_snapshot(Snapshot())


class _Writer:
    def __init__(self, facts: SessionFacts, written: Snapshot | None) -> None:
        items = facts.journal.items
        tasks = find_tasks([quote.text for quote in facts.directives], facts.journal.outputs)
        state = describe_state(items, tasks.tickets)
        known = parse_items(clean(facts.earlier.file_system_state))
        self._journal, self._files = JournalQuotes(items), FileRecords(facts.journal, known)
        self._blocks = [
            _Block("overall_goal", _GOAL, _quote_goal(facts)),
            _Block("user_directives", _DIRECTIVES, _quote_directives(facts)),
            _Block("key_knowledge", _SUMMARIES, facts.summaries),
            _Block("key_knowledge", _TASKS, _weigh_tasks(tasks, state), _MIN_TASK),
            _Block("key_knowledge", _REPORTS, tasks.reports, _MIN_TASK),
            _Block("file_system_state", _STATE, state.quotes),
            _Block("current_plan", _PLAN, list(quote_plan(facts.steps, items))),
            _Block("open_questions", _OPEN, list(quote_open(items))),
        ]
        if written is not None:
            said = {quote.text for quote in facts.directives}
            found = quote_written(written, facts.journal.outputs, said)
            self._blocks += (_Block(name, _WRITTEN, quotes) for name, quotes in found)
        self._blocks += _earlier_blocks(facts, self._blocks)
        self._left_out = count_left_out(facts.earlier)
        sizes = [sum(quote.size for quote in block.quotes) for block in self._blocks]
        excess = sum(max(0, quote.size - _LONG) for quote in self._blocks[1].quotes)
        sizes[1] += (len(_LEFT_OUT) if self._left_out else 0) - excess
        self._demands = [*sizes, excess, self._journal.size, self._files.size]
        self._root = [f"- {ROOT}{one_line(r, 300)}"] if (r := facts.journal.root) else []
        quoted = {quote.entry for block in self._blocks for quote in block.quotes}
        self._contents = self._files.quote_contents(quoted)
        self.demand = sum((*self._demands, _TAGS, *(quote.size for quote in self._contents)))

    def write(self, size: int) -> str:
        weights = [*(block.weight for block in self._blocks), _EXCESS, _JOURNAL, _FILES]
        given = share_room(self._demands, weights, size - _TAGS)
        unused = size - _TAGS - sum(given)
        given[1] += given[-3]
        sections: dict[str, list[str]] = {name: [] for name in SECTIONS}
        sections["file_system_state"] += self._root
        for block, room in zip(self._blocks, given, strict=False):
            if block.section == "user_directives":
                sections[block.section] += _fit_directives(block.quotes, room, self._left_out)
            else:
                sections[block.section] += fit_quotes(block.quotes, room, block.least)
        said = "\n".join(item for items in sections.values() for item in items)
        sections["recent_actions"] += self._journal.write(given[-2], said)
        sections["file_system_state"] += self._files.write(given[-1])
        sections["file_system_state"] += fit_quotes(self._contents, unused, _MIN_TASK)
        texts = {name: "\n".join(dict.fromkeys(items)) for name, items in sections.items()}
        return write_snapshot(Snapshot(**texts))


def _quote_goal(facts: SessionFacts) -> list[Quote]:
    """The goal as the first snapshot put it, else the user's first words; and the latest."""
    said = [quote.text for quote in facts.directives]
    earlier = parse_items(clean(facts.earlier.overall_goal))
    goals = [text for text in earlier or said[:1] if not text.startswith(_LATEST)]
    latest = [t for t in said if len(t) >= _MIN_GOAL and not t.startswith(REFUSED_CALL)][-1:]
    if latest and latest[0] not in goals:
        goals.append(_LATEST + latest[0])
    return [Quote(one_line(text, _MAX_GOAL)) for text in goals]


def _quote_directives(facts: SessionFacts) -> list[Quote]:
    """The first says what the session is about: it is left out last."""
    quotes = [*earlier_directives(facts.earlier, facts.directives), *facts.directives]
    return [quote._replace(weight=1.0 if n else 1.5) for n, quote in enumerate(quotes)]


def _fit_directives(quotes: Sequence[Quote], room: int, gone: int) -> list[str]:
    """Whole where there is room; if some are left out, now or earlier, it says how many."""
    items = fit_quotes(quotes, room, _MIN_DIRECTIVE)
    if items and len(items) < len(quotes) + gone:
        items = fit_quotes(quotes, room - len(_LEFT_OUT), _MIN_DIRECTIVE)
        items.insert(1, _LEFT_OUT.format(gone + len(quotes) - len(items)))
    return items


def _weigh_tasks(found: TaskTexts, state: WorkState) -> list[Quote]:
    """The newest task weighs most, then the one named first; those that are closed hardly."""
    weighed = []
    for number, (ids, quote) in enumerate(found.tasks.items()):
        weight = _OTHER if number else _NAMED
        weight = _CURRENT if number == len(found.tasks) - 1 else weight
        closed = state.closed.issuperset(ids.split()) and weight == _OTHER
        weighed.append(quote._replace(weight=_CLOSED if closed else weight))
    return weighed


def _earlier_blocks(facts: SessionFacts, blocks: Sequence[_Block]) -> list[_Block]:
    found = []
    ran = {check_key(run.command) for item in facts.journal.items for run in item.runs}
    answered = bool(facts.directives)
    for name in SECTIONS[2:]:  # the goal and the directives have their own ways
        newer = [format_item(q) for block in blocks if block.section == name for q in block.quotes]
        kept = earlier_items(facts.earlier.section(name), newer)
        if name == "open_questions":
            kept = [quote for quote in kept if is_open(quote.text, ran, answered=answered)]
        elif name == "current_plan":  # its steps were parsed
            kept = [quote for quote in kept if not is_step(quote.text)]
        if kept:
            found.append(_Block(name, _EARLIER, kept))
    return found
