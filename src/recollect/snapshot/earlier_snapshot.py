"""Taking an earlier snapshot into a fold: its directives word for word, its facts as older ones.

What a snapshot says counts as met before anything that follows, so facts that nobody meets again
lose against new ones when room is short. Directives never do. Lines that code wrote are read
back as the facts they were made from; everything else is prose and is kept as prose.
"""

from __future__ import annotations

from recollect.snapshot.code_names import find_names
from recollect.snapshot.directives import is_shortened, parse_directives
from recollect.snapshot.file_section import parse_section
from recollect.snapshot.ledger import AgentAction, FileFacts, OpenFailure, Passage, Quotation
from recollect.snapshot.ledger_fold import FileHistory, LedgerFold, failure_subject
from recollect.snapshot.line_prefixes import (
    COMMANDS,
    FAILED,
    LATEST,
    NAMES,
    QUESTION,
    QUOTED,
    REPORT,
    ROOT,
)
from recollect.snapshot.name_tallies import find_mentions, find_names_by_line, merge_names
from recollect.snapshot.plan_steps import parse_steps
from recollect.snapshot.snapshot_format import Snapshot
from recollect.text import clean, clip, one_line

SNAPSHOT_AGE = 10  # calls by which what a snapshot says is taken to be older than the snapshot
_SNAPSHOT_WEIGHT = 0.5
_MAX_PROSE = 12_000  # characters of one snapshot's prose


def find_root(earlier: Snapshot) -> str:
    """The root that a snapshot's paths are relative to, if it says so."""
    lines = earlier.key_knowledge[:2_000].split("\n")
    return next((line[len(ROOT) :] for line in lines if line.startswith(ROOT)), "")


def absorb_snapshot(fold: LedgerFold, earlier: Snapshot) -> None:
    if earlier.key_knowledge.strip():
        fold.knowledge.clear()  # a snapshot carries on what the one before knew
    goal = clean(earlier.overall_goal).partition(f"\n{LATEST}")[0]
    fold.goal = fold.goal or clip(goal.strip(), 2_000)
    said, known = parse_directives(clean(earlier.user_directives)), tuple(fold.directives)
    older = (text for text in said if not any(is_shortened(text, whole) for whole in known))
    fold.directives = dict.fromkeys((*older, *known))
    _absorb_files(fold, clean(earlier.file_system_state))
    if not fold.steps:
        fold.steps = parse_steps(clean(earlier.current_plan))
    for line in clean(earlier.recent_actions).split("\n")[-20:]:
        if line.strip() and not fold.now:
            fold.actions.append(AgentAction("", one_line(line, 300), "", -SNAPSHOT_AGE))
    _absorb_knowledge(fold, clean(earlier.key_knowledge))
    _absorb_questions(fold, clean(earlier.open_questions))


def absorb_prose(fold: LedgerFold, text: str) -> None:
    """Another program's summary: kept as it reads, its names counted."""
    _, told, summary = text.partition("\nSummary:\n")  # some think aloud before they summarise
    prose = clean((summary if told else text)[:_MAX_PROSE]).strip()
    if prose:
        fold.knowledge.append(prose)
        _count_names(fold, prose)


def _count_names(fold: LedgerFold, text: str) -> None:
    lines = find_names_by_line(text)
    fold.tallies.see(merge_names(lines), _SNAPSHOT_WEIGHT, fold.now - SNAPSHOT_AGE)
    for file, names in find_mentions(lines):
        fold.tallies.mentions.add((file,), _SNAPSHOT_WEIGHT, fold.now - SNAPSHOT_AGE)
        fold.tallies.tie(
            file, names.words | names.chains, _SNAPSHOT_WEIGHT, fold.now - SNAPSHOT_AGE
        )


def _absorb_file(fold: LedgerFold, facts: FileFacts) -> None:
    """Counts are those of the snapshot or of the entries before it, whichever is more."""
    then, file = fold.now - SNAPSHOT_AGE, facts.path
    fold.tallies.mentions.add((file,), _SNAPSHOT_WEIGHT, then)
    for place, name in enumerate(facts.defines):
        # the best come first in a line
        fold.tallies.see(find_names(name), _SNAPSHOT_WEIGHT, then - place // 8, (file,))
    if facts.touched:
        notes = fold.files.setdefault(file, FileHistory())
        notes.created, notes.deleted = notes.created or facts.created, facts.deleted
        notes.edits, notes.reads = max(notes.edits, facts.edits), max(notes.reads, facts.reads)


def _absorb_files(fold: LedgerFold, text: str) -> None:
    back = parse_section(text)
    for facts in back.files:
        _absorb_file(fold, facts)
    for passage in reversed(back.passages):
        fold.passages.setdefault(
            tuple(sorted(passage.files)), Passage(*passage, last=fold.now - SNAPSHOT_AGE)
        )
        fold.tallies.mentions.add(passage.files, _SNAPSHOT_WEIGHT, fold.now - SNAPSHOT_AGE)
        names = find_names(" ".join(passage.names))
        fold.tallies.see(names, _SNAPSHOT_WEIGHT, fold.now - SNAPSHOT_AGE)
    absorb_prose(fold, back.notes)


def _absorb_knowledge(fold: LedgerFold, text: str) -> None:
    prose: list[str] = []
    quoted: dict[str, list[str]] = {}
    source = ""
    for line in text.split("\n"):
        if match := QUOTED.fullmatch(line):
            source = match[1]
        elif source and line.startswith("> "):
            quoted.setdefault(source, []).append(line[2:])
        elif line.startswith(NAMES):
            fold.tallies.see(
                find_names(line[len(NAMES) :]), _SNAPSHOT_WEIGHT, fold.now - SNAPSHOT_AGE
            )
        elif line.startswith(REPORT):
            fold.report = fold.report or line[len(REPORT) :]
        elif not line.startswith((ROOT, COMMANDS)):
            prose.append(line)
    for name, lines in reversed(quoted.items()):
        fold.quotations.setdefault(name, Quotation(name, "\n".join(lines), fold.now - SNAPSHOT_AGE))
    absorb_prose(fold, "\n".join(prose))


def _absorb_questions(fold: LedgerFold, text: str) -> None:
    for line in text.split("\n"):
        if match := FAILED.fullmatch(line):
            problem = OpenFailure(match[1], match[2], fold.now - SNAPSHOT_AGE)
            fold.problems.setdefault(failure_subject(match[1]), problem)
        elif line.startswith(QUESTION):
            fold.question = fold.question or line[len(QUESTION) :]
        elif line.strip():
            fold.knowledge.append(one_line(line, 400))
