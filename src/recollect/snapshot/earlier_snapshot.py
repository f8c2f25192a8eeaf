"""Adding an earlier snapshot to a ledger: its directives word for word, its facts as older ones.

A snapshot's facts count as seen before anything that follows, so when room is short they lose to
newer ones unless they are seen again. Directives never do. Lines that code wrote are parsed into
the facts they were made from; everything else is kept as prose.
"""

from __future__ import annotations

import msgspec

from recollect.snapshot import section_texts
from recollect.snapshot.code_names import find_names, merge_names
from recollect.snapshot.directives import is_shortened, parse_directives
from recollect.snapshot.file_section import parse_section
from recollect.snapshot.ledger import AgentAction, FileFacts, OpenFailure, Passage, Quotation
from recollect.snapshot.ledger_fold import LedgerFold, failure_subject
from recollect.snapshot.name_tallies import find_mentions, find_names_by_line
from recollect.snapshot.plan_steps import parse_steps
from recollect.snapshot.snapshot_format import Snapshot
from recollect.text import clean, clip, one_line

SNAPSHOT_AGE = 10  # calls by which a snapshot's facts count as older than the snapshot
_WEIGHT = 0.5
_MAX_PROSE = 12_000  # characters of one snapshot's prose


def find_root(earlier: Snapshot) -> str:
    """The root that a snapshot's paths are relative to, if it names one."""
    lines = earlier.key_knowledge[:2_000].split("\n")
    prefix = section_texts.ROOT
    return next((line.removeprefix(prefix) for line in lines if line.startswith(prefix)), "")


def absorb_snapshot(fold: LedgerFold, earlier: Snapshot) -> None:
    if earlier.key_knowledge.strip():
        fold.knowledge.clear()  # a snapshot repeats what the one before it knew
    goal = clean(earlier.overall_goal).partition(f"\n{section_texts.LATEST}")[0]
    fold.goal = fold.goal or clip(goal.strip(), 2_000)
    written, known = parse_directives(clean(earlier.user_directives)), tuple(fold.directives)
    older = (text for text in written if not any(is_shortened(text, whole) for whole in known))
    fold.directives = dict.fromkeys((*older, *known))
    _absorb_files(fold, clean(earlier.file_system_state))
    if not fold.steps:
        fold.steps = parse_steps(clean(earlier.current_plan))
    for line in clean(earlier.recent_actions).split("\n")[-20:]:
        if line.strip() and not fold.now:
            fold.actions.append(AgentAction("", one_line(line, 300)))
    _absorb_knowledge(fold, clean(earlier.key_knowledge))
    _absorb_questions(fold, clean(earlier.open_questions))


def absorb_prose(fold: LedgerFold, text: str) -> None:
    """Another program's summary is kept as it is, and its names are counted."""
    _, found, summary = text.partition("\nSummary:\n")  # some models think aloud before it
    prose = clean((summary if found else text)[:_MAX_PROSE]).strip()
    if not prose:
        return
    fold.knowledge.append(prose)
    lines, then = find_names_by_line(prose), fold.now - SNAPSHOT_AGE
    fold.tallies.count(merge_names(lines), _WEIGHT, then)
    for file, names in find_mentions(lines):
        fold.tallies.mentions.add((file,), _WEIGHT, then)
        fold.tallies.link(file, names.words | names.chains, _WEIGHT, then)


def _absorb_file(fold: LedgerFold, facts: FileFacts) -> None:
    """Counts are those of the snapshot or of the entries before it, whichever are higher."""
    then, file = fold.now - SNAPSHOT_AGE, facts.path
    fold.tallies.mentions.add((file,), _WEIGHT, then)
    for place, name in enumerate(facts.defines):
        # a line has the most useful names first
        fold.tallies.count(find_names(name), _WEIGHT, then - place // 8, (file,))
    if facts.touched:
        known = fold.file(file)
        fold.files[file] = msgspec.structs.replace(
            known,
            created=known.created or facts.created,
            deleted=facts.deleted,
            edits=max(known.edits, facts.edits),
            reads=max(known.reads, facts.reads),
        )


def _absorb_files(fold: LedgerFold, text: str) -> None:
    parsed, then = parse_section(text), fold.now - SNAPSHOT_AGE
    for facts in parsed.files:
        _absorb_file(fold, facts)
    for group in reversed(parsed.groups):
        fold.passages.setdefault(tuple(sorted(group.files)), Passage(*group, last=then))
        fold.tallies.mentions.add(group.files, _WEIGHT, then)
        fold.tallies.count(find_names(" ".join(group.names)), _WEIGHT, then)
    absorb_prose(fold, parsed.notes)


def _absorb_knowledge(fold: LedgerFold, text: str) -> None:
    prose: list[str] = []
    quoted: dict[str, list[str]] = {}
    source = ""
    for line in text.split("\n"):
        if match := section_texts.QUOTED.fullmatch(line):
            source = match[1]
        elif source and line.startswith("> "):
            quoted.setdefault(source, []).append(line[2:])
        elif line.startswith(section_texts.NAMES):
            names = find_names(line[len(section_texts.NAMES) :])
            fold.tallies.count(names, _WEIGHT, fold.now - SNAPSHOT_AGE)
        elif line.startswith(section_texts.REPORT):
            fold.report = fold.report or line[len(section_texts.REPORT) :]
        elif not line.startswith((section_texts.ROOT, section_texts.COMMANDS)):
            prose.append(line)
    for name, lines in reversed(quoted.items()):
        fold.quotations.setdefault(name, Quotation(name, "\n".join(lines), fold.now - SNAPSHOT_AGE))
    absorb_prose(fold, "\n".join(prose))


def _absorb_questions(fold: LedgerFold, text: str) -> None:
    for line in text.split("\n"):
        if match := section_texts.FAILED.fullmatch(line):
            failure = OpenFailure(match[1], match[2], fold.now - SNAPSHOT_AGE)
            fold.failures.setdefault(failure_subject(match[1]), failure)
        elif line.startswith(section_texts.QUESTION):
            fold.question = fold.question or line[len(section_texts.QUESTION) :]
        elif line.strip():
            fold.knowledge.append(one_line(line, 400))
