"""Where the entries of a file go in a session that may already hold some of them.

Entries that are there (ids are derived, so the same history has the same ids) are left alone. The
others are grouped into unbroken runs, each to be appended in one go after its parent; the run that
ends at the file's own leaf comes last, so that an import that was cut short goes on where it was.

The head follows the file when all it would leave behind are entries that the file itself has left
behind, or an earlier state of the file's last message. When our session has gone its own way, or
the file has been changed in its past, the head stays and the file's version is a branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from recollect.entries import Body, Entry, Message, Note, Source, Text, Title, ToolCall, json_text
from recollect.store.ids import derived_id
from recollect.transcripts.record_format import get_tag, original_id
from recollect.transcripts.transcript import Transcript

_CANDIDATES = 50  # entries of one millisecond that are looked at


class AppendRun(NamedTuple):
    after: str | None
    entries: tuple[Entry, ...]


class ImportPlan(NamedTuple):
    """Courses: `on` from the head; `follow_output` the file to another place; `aside`, as a branch, and
    the head goes back; `none` when nothing is new on the way to the file's leaf."""

    runs: tuple[AppendRun, ...]
    course: Literal["on", "follow", "aside", "none"]
    end: str | None = None  # the file's own place among what is new
    displaced: int = 0  # entries of ours that the file's version does not go on from

    @property
    def new(self) -> tuple[Entry, ...]:
        return tuple(entry for run in self.runs for entry in run.entries)


def plan_import(
    foreign: Transcript, source: Entry | None, tree: Sequence[Entry], path: Sequence[Entry]
) -> ImportPlan:
    """`tree` is all the session holds, `path` what leads to its head, `source` a new one if any."""
    foreign = _at_home(foreign, {entry.id: entry for entry in tree})
    held = {entry.id for entry in tree}
    missing = [entry for entry in foreign.entries if entry.id not in held]
    main = [entry.id for entry in foreign.path]
    fork = next((id_ for id_ in reversed(main) if id_ in held), None)
    about = _headings(foreign, held) + _notes(foreign, tree, held)
    missing, spine = _with_bookkeeping(foreign, source, missing, about, main, fork)
    runs = _runs(missing, spine)
    end = next((entry.id for entry in reversed(missing) if entry.id in spine), None)
    if end is None:
        return ImportPlan(runs, "none")
    if not path and fork is not None:  # an import that was cut short before its last run
        return ImportPlan(runs, "follow", end)
    tail = _after(path, fork)
    if tail is not None and all(is_bookkeeping(foreign, entry) for entry in tail):
        head = path[-1].id if path else None
        moved = tuple(run._replace(after=head) if run.after == fork else run for run in runs)
        return ImportPlan(moved, "on", end)
    follows = tail is not None and _explained(foreign, tail, set(main))
    count = sum(not is_bookkeeping(foreign, entry) for entry in tail or ())
    return ImportPlan(runs, "follow" if follows else "aside", end, count)


def _at_home(foreign: Transcript, held: Mapping[str, Entry]) -> Transcript:
    """With the ids we know: entries of ours that left in an export and come back are the same."""
    ours: dict[str | None, str] = {}
    for entry in foreign.entries:
        known = held.get(original_id(foreign.format, entry.body) or "")
        if known is not None and entry.id not in held and _alike(known.body, entry.body):
            ours[entry.id] = known.id
    if not ours:
        return foreign
    entries = tuple(
        _under(entry, ours.get(entry.parent, entry.parent))
        for entry in foreign.entries
        if entry.id not in ours
    )
    return msgspec.structs.replace(
        foreign,
        entries=(*(held[id_] for id_ in ours.values()), *entries),
        leaf=ours.get(foreign.leaf, foreign.leaf),
    )


def _alike(ours: Body, theirs: Body) -> bool:
    if isinstance(ours, Message) and isinstance(theirs, Message):
        return ours.role == theirs.role and ours.parts == theirs.parts
    return type(ours) is type(theirs)


def title_id(foreign: Transcript) -> str:
    return derived_id(foreign.format, foreign.session, "title", foreign.heading)


def note_id(foreign: Transcript, note: Note) -> str:
    return derived_id(foreign.format, foreign.session, "note", note.extra)


def _headings(foreign: Transcript, held: set[str]) -> list[tuple[str, Body]]:
    if not foreign.heading or title_id(foreign) in held:
        return []
    mark = json_text({foreign.format: {"header": True}})
    return [(title_id(foreign), Title(title=foreign.heading, extra=mark))]


def _notes(foreign: Transcript, tree: Sequence[Entry], held: set[str]) -> list[tuple[str, Body]]:
    """Those that say something which no note of the session says yet."""
    new = [note for note in foreign.notes if note_id(foreign, note) not in held]
    if not new:
        return []
    said = [
        get_tag(foreign.format, entry.body).items()
        for entry in tree
        if isinstance(entry.body, Note) and is_bookkeeping(foreign, entry)
    ]
    return [
        (note_id(foreign, note), note)
        for note in new
        if not any(get_tag(foreign.format, note).items() <= other for other in said)
    ]


def _with_bookkeeping(
    foreign: Transcript,
    source: Entry | None,
    missing: list[Entry],
    about: Sequence[tuple[str, Body]],
    main: list[str],
    fork: str | None,
) -> tuple[list[Entry], set[str]]:
    """The source before, title and notes after what is new on the way to the leaf."""
    spine, entries = set(main), list(missing)
    last = foreign.leaf
    if source is not None:
        entries = [
            _under(entry, source.id) if entry.parent == fork and entry.id in spine else entry
            for entry in entries
        ]
        entries.insert(0, _under(source, fork))
        spine.add(source.id)
        last = source.id if fork == foreign.leaf else foreign.leaf
    time = max((entry.time for entry in foreign.entries), default=foreign.created)
    for id_, body in about:
        entries.append(Entry(id_, last, time, body))
        spine.add(id_)
        last = id_
    return entries, spine


def _under(entry: Entry, parent: str | None) -> Entry:
    return Entry(entry.id, parent, entry.time, entry.body)


def _runs(missing: Sequence[Entry], spine: set[str]) -> tuple[AppendRun, ...]:
    children: dict[str | None, list[Entry]] = {}
    for entry in missing:
        children.setdefault(entry.parent, []).append(entry)
    for siblings in children.values():
        siblings.sort(key=lambda entry: entry.id in spine)
    new = {entry.id for entry in missing}
    roots = [entry for entry in missing if entry.parent not in new]
    roots.sort(key=lambda entry: entry.id in spine)
    runs: list[AppendRun] = []
    waiting = roots[::-1]
    while waiting:
        start = at = waiting.pop()
        run = [at]
        while following := children.get(at.id):
            waiting += following[:0:-1]
            at = following[0]
            run.append(at)
        runs.append(AppendRun(start.parent, tuple(run)))
    return tuple(runs)


def _after(path: Sequence[Entry], fork: str | None) -> Sequence[Entry] | None:
    """What our path holds after an entry; None if the entry is not on it."""
    if fork is None:
        return path
    for position in range(len(path) - 1, -1, -1):
        if path[position].id == fork:
            return path[position + 1 :]
    return None


def is_bookkeeping(foreign: Transcript, entry: Entry) -> bool:
    """Written by an import about the file itself, not about what happened."""
    if isinstance(entry.body, Source):
        return True
    about = isinstance(entry.body, Title | Note)
    return about and "header" in get_tag(foreign.format, entry.body)


def _explained(foreign: Transcript, tail: Sequence[Entry], main: set[str]) -> bool:
    """Whether the file accounts for all of these entries of ours that it does not go on from."""
    theirs = {entry.id for entry in foreign.entries}
    later: dict[int, list[Body]] = {}
    for entry in foreign.entries:
        if entry.id in main:
            later.setdefault(entry.time, []).append(entry.body)
    for entry in tail:
        joined = "joined" in get_tag(foreign.format, entry.body)
        if entry.id in theirs or joined or is_bookkeeping(foreign, entry):
            continue
        if not any(_grew(entry.body, body) for body in later.get(entry.time, ())[:_CANDIDATES]):
            return False
    return True


def _grew(before: Body, now: Body) -> bool:
    """Whether a message is a later state of another: all of it is there, and perhaps more."""
    if not isinstance(before, Message) or not isinstance(now, Message):
        return type(before) is type(now)
    calls = [{p.id for p in message.parts if isinstance(p, ToolCall)} for message in (before, now)]
    texts = ["".join(p.text for p in m.parts if isinstance(p, Text)) for m in (before, now)]
    return before.role == now.role and calls[0] <= calls[1] and texts[1].startswith(texts[0])
