"""What a stretch of a session holds that a snapshot may quote: one pass over its entries.

Entries are those on one path, oldest first; the same entries give the same facts. Snapshots of
earlier compactions are facts too. What the user said comes from the log and from snapshots that we
wrote: another program's summary can add knowledge, but no wishes of the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from recollect.entries import Compaction, Entry, Message, Text, ToolCall
from recollect.plan_steps import PlanStep, apply_plan_call, parse_steps
from recollect.snapshot.quotes import Quote, parse_items
from recollect.snapshot.snapshot_format import Snapshot, parse_snapshot
from recollect.text import clean, clip_middle
from recollect.toolkinds import classify_tool, find_absolute_paths, guess_root, parse_arguments
from recollect.user_text import find_user_text
from recollect.work_journal import WorkJournal

REFUSED_CALL = "(refused this call: "
_SNAPSHOT = "<state_snapshot>"
ROOT = "Root: "
_ROOT = re.compile(rf"^- {ROOT}(/[^\n]{{1,300}})$", re.M)


class SessionFacts(msgspec.Struct):
    journal: WorkJournal
    directives: list[Quote] = []
    steps: tuple[PlanStep, ...] = ()  # of a plan tool
    earlier: Snapshot = Snapshot()  # the newest
    summaries: list[Quote] = []  # of other programs


def collect_facts(entries: Iterable[Entry], root: str = "") -> SessionFacts:
    """`root` is the project's directory, unless the session's files are all elsewhere."""
    path = tuple(entries)
    facts = SessionFacts(WorkJournal(_choose_root(path, root)))
    for entry in path:
        if isinstance(entry.body, Compaction) and entry.body.status == "COMPRESSED":
            _add_snapshot(facts, entry, entry.body.snapshot, foreign=entry.body.trigger == "import")
        elif isinstance(entry.body, Message):
            _add_message(facts, entry, entry.body)
    return facts


def _add_message(facts: SessionFacts, entry: Entry, message: Message) -> None:
    first = message.parts[0] if message.parts else None
    begins = first.text[:100].lstrip() if isinstance(first, Text) else ""
    if isinstance(first, Text) and message.role == "user" and begins.startswith(_SNAPSHOT):
        _add_snapshot(facts, entry, first.text, foreign=True)
        return
    if typed := find_user_text(message):
        facts.journal.turn += 1
        facts.directives = [quote for quote in facts.directives if quote.text != typed]
        facts.directives.append(Quote(typed, entry.id, shorten=clip_middle))
    refused = len(facts.journal.refused)
    facts.journal.add(entry, message)
    facts.directives += (
        Quote(f"{REFUSED_CALL}{call})", entry.id) for call in facts.journal.refused[refused:]
    )
    for part in message.parts:
        if isinstance(part, ToolCall) and classify_tool(part.name) == "plan":
            facts.steps = apply_plan_call(facts.steps, parse_arguments(part.arguments) or {})


def _add_snapshot(facts: SessionFacts, entry: Entry, text: str, *, foreign: bool) -> None:
    found = parse_snapshot(text)
    if found is None:
        _, thought, summary = text.partition("\nSummary:\n")  # some models think aloud before it
        prose = clean(summary if thought else text).strip()
        facts.summaries.append(Quote(prose, entry.id, shorten=clip_middle))
        return
    facts.steps = parse_steps("\n".join(parse_items(found.current_plan)))
    # other programs have no rule against inventing what the user said
    said = "" if foreign else found.user_directives
    facts.earlier = msgspec.structs.replace(found, user_directives=said)


def _earlier_root(entries: Sequence[Entry]) -> str:
    """The root that the newest snapshot names."""
    snapshots = (e.body.snapshot for e in reversed(entries) if isinstance(e.body, Compaction))
    return next((found[1] for text in snapshots if (found := _ROOT.search(text))), "")


def _choose_root(entries: Sequence[Entry], root: str) -> str:
    bodies = (entry.body for entry in entries)
    parts = (part for body in bodies if isinstance(body, Message) for part in body.parts)
    calls = (part.arguments for part in parts if isinstance(part, ToolCall))
    found = find_absolute_paths(calls)
    if root and (not found or any(path.startswith(f"{root}/") for path in found)):
        return root
    return _earlier_root(entries) or guess_root(found) or root
