"""Taking an earlier snapshot into a fold: its directives word for word, its facts as older ones.

What a snapshot says counts as met before anything that follows, so facts that nobody meets again
lose against new ones when room is short. Directives never do. Lines that code wrote are read
back as the facts they were made from; everything else is prose and is kept as prose.
"""

from __future__ import annotations

from recollect.snapshot.directives import from_list, is_cut_of
from recollect.snapshot.filelines import read_back
from recollect.snapshot.folding import FileNotes, Fold, subject_of
from recollect.snapshot.labels import (
    ASKED,
    COMMANDS,
    FAILED,
    LATEST,
    NAMES,
    QUOTED,
    REPORT,
    ROOT,
)
from recollect.snapshot.ledger import Action, FileFacts, Passage, Problem, Quotation
from recollect.snapshot.names import names_in
from recollect.snapshot.plans import from_lines
from recollect.snapshot.sections import Snapshot
from recollect.snapshot.tallies import by_line, mentions_in, union
from recollect.snapshot.texts import clean, clip, one_line

AGE = 10  # calls by which what a snapshot says is taken to be older than the snapshot
_WEIGHT = 0.5
_MOST_PROSE = 12_000  # characters of one snapshot's prose


def root_of(earlier: Snapshot) -> str:
    """The root that a snapshot's paths are relative to, if it says so."""
    lines = earlier.key_knowledge[:2_000].split("\n")
    return next((line[len(ROOT) :] for line in lines if line.startswith(ROOT)), "")


def absorb(fold: Fold, earlier: Snapshot) -> None:
    if earlier.key_knowledge.strip():
        fold.knowledge.clear()  # a snapshot carries on what the one before knew
    goal = clean(earlier.overall_goal).partition(f"\n{LATEST}")[0]
    fold.goal = fold.goal or clip(goal.strip(), 2_000)
    said, known = from_list(clean(earlier.user_directives)), tuple(fold.directives)
    older = (text for text in said if not any(is_cut_of(text, whole) for whole in known))
    fold.directives = dict.fromkeys((*older, *known))
    _absorb_files(fold, clean(earlier.file_system_state))
    if not fold.steps:
        fold.steps = from_lines(clean(earlier.current_plan))
    for line in clean(earlier.recent_actions).split("\n")[-20:]:
        if line.strip() and not fold.now:
            fold.actions.append(Action("", one_line(line, 300), "", -AGE))
    _absorb_knowledge(fold, clean(earlier.key_knowledge))
    _absorb_questions(fold, clean(earlier.open_questions))


def absorb_prose(fold: Fold, text: str) -> None:
    """Another program's summary: kept as it reads, its names counted."""
    _, told, summary = text.partition("\nSummary:\n")  # some think aloud before they summarise
    prose = clean((summary if told else text)[:_MOST_PROSE]).strip()
    if prose:
        fold.knowledge.append(prose)
        _count(fold, prose)


def _count(fold: Fold, text: str) -> None:
    lines = by_line(text)
    fold.tallies.see(union(lines), _WEIGHT, fold.now - AGE)
    for file, names in mentions_in(lines):
        fold.tallies.mentions.add((file,), _WEIGHT, fold.now - AGE)
        fold.tallies.tie(file, names.words | names.chains, _WEIGHT, fold.now - AGE)


def _absorb_file(fold: Fold, facts: FileFacts) -> None:
    """Counts are those of the snapshot or of the entries before it, whichever is more."""
    then, file = fold.now - AGE, facts.path
    fold.tallies.mentions.add((file,), _WEIGHT, then)
    for place, name in enumerate(facts.defines):
        # the best come first in a line
        fold.tallies.see(names_in(name), _WEIGHT, then - place // 8, (file,))
    if facts.touched:
        notes = fold.files.setdefault(file, FileNotes())
        notes.created, notes.deleted = notes.created or facts.created, facts.deleted
        notes.edits, notes.reads = max(notes.edits, facts.edits), max(notes.reads, facts.reads)


def _absorb_files(fold: Fold, text: str) -> None:
    back = read_back(text)
    for facts in back.files:
        _absorb_file(fold, facts)
    for passage in reversed(back.passages):
        fold.passages.setdefault(
            tuple(sorted(passage.files)), Passage(*passage, last=fold.now - AGE)
        )
        fold.tallies.mentions.add(passage.files, _WEIGHT, fold.now - AGE)
        names = names_in(" ".join(passage.names))
        fold.tallies.see(names, _WEIGHT, fold.now - AGE)
    absorb_prose(fold, back.notes)


def _absorb_knowledge(fold: Fold, text: str) -> None:
    prose: list[str] = []
    quoted: dict[str, list[str]] = {}
    source = ""
    for line in text.split("\n"):
        if match := QUOTED.fullmatch(line):
            source = match[1]
        elif source and line.startswith("> "):
            quoted.setdefault(source, []).append(line[2:])
        elif line.startswith(NAMES):
            fold.tallies.see(names_in(line[len(NAMES) :]), _WEIGHT, fold.now - AGE)
        elif line.startswith(REPORT):
            fold.report = fold.report or line[len(REPORT) :]
        elif not line.startswith((ROOT, COMMANDS)):
            prose.append(line)
    for name, lines in reversed(quoted.items()):
        fold.quotations.setdefault(name, Quotation(name, "\n".join(lines), fold.now - AGE))
    absorb_prose(fold, "\n".join(prose))


def _absorb_questions(fold: Fold, text: str) -> None:
    for line in text.split("\n"):
        if match := FAILED.fullmatch(line):
            problem = Problem(match[1], match[2], fold.now - AGE)
            fold.problems.setdefault(subject_of(match[1]), problem)
        elif line.startswith(ASKED):
            fold.question = fold.question or line[len(ASKED) :]
        elif line.strip():
            fold.knowledge.append(one_line(line, 400))
