"""Where the entries of a file go in a session that may already hold some of them.

Entries that the session holds stay as they are (ids are derived, so the same history has the same
ids). The others are grouped into unbroken runs, each to be appended at once after its parent; the
run that ends at the file's own leaf comes last, so that an interrupted import can be completed.

The head follows the file if it would leave behind only entries that the file itself has left
behind, or an earlier state of the file's last message. If our session has continued on its own, or
the file's past was changed, the head stays and the file's version becomes a branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.entries import Body, Entry, Message, Note, Source, Text, Title, ToolCall, json_text
from recollect.store.ids import derived_id, is_id
from recollect.transcripts.record_format import get_tag, original_id, rename_entries
from recollect.transcripts.transcript import Transcript

CANDIDATES = 50  # entries of the same millisecond that are compared
Course: TypeAlias = Literal["append", "follow", "branch", "none"]


class AppendRun(NamedTuple):
    after: str | None
    entries: tuple[Entry, ...]


class ImportPlan(NamedTuple):
    """Courses: `append` after the head; `follow` the file, away from the head; `branch`, and the
    head stays; `none` when nothing is new on the way to the file's leaf."""

    runs: tuple[AppendRun, ...]
    course: Course
    end: str | None = None  # the last new entry on the way to the file's leaf
    displaced: int = 0  # entries of ours that the file's version leaves behind

    @property
    def new(self) -> tuple[Entry, ...]:
        return tuple(entry for run in self.runs for entry in run.entries)


def plan_import(
    transcript: Transcript,
    source: Entry | None,
    tree: Sequence[Entry],
    path: Sequence[Entry],
    *,
    keep_ids: bool = False,
) -> ImportPlan:
    """`source`: an entry for the file's bytes, if they are new; `tree`: all entries of the session;
    `path`: those that lead to its head. `keep_ids`: new entries get the ids that the file gives
    them, if they are ids of ours: texts name entries by them."""
    held = {entry.id: entry for entry in tree}
    transcript = _with_our_ids(transcript, held)
    if keep_ids:
        transcript = _with_original_ids(transcript, held)
    main = [entry.id for entry in transcript.path]
    fork = next((id_ for id_ in reversed(main) if id_ in held), None)
    missing, spine = _missing(transcript, source, held, main, fork)
    runs = _group_runs(missing, spine)
    end = next((entry.id for entry in reversed(missing) if entry.id in spine), None)
    if end is None:
        return ImportPlan(runs, "none")
    if not path and fork is not None:  # an import that was interrupted before its last run
        return ImportPlan(runs, "follow", end)
    tail = _entries_after(path, fork)
    if tail is not None and all(is_bookkeeping(transcript, entry) for entry in tail):
        head = path[-1].id if path else None
        moved = tuple(run._replace(after=head) if run.after == fork else run for run in runs)
        return ImportPlan(moved, "append", end)
    follows = tail is not None and _accounts_for(transcript, tail, set(main))
    count = sum(not is_bookkeeping(transcript, entry) for entry in tail or ())
    return ImportPlan(runs, "follow" if follows else "branch", end, count)


def _with_our_ids(transcript: Transcript, held: Mapping[str, Entry]) -> Transcript:
    """With our ids for entries of ours that were exported and come back, up to a change of the
    past: what follows one is another history."""
    format_, by_original = transcript.format, dict[str | None, Entry]()
    if transcript.is_own:  # it may have been imported here under other ids
        by_original = {original_id(format_, entry.body): entry for entry in held.values()}
    ours: dict[str, str] = {}
    for entry in transcript.entries:
        was = original_id(format_, entry.body) or ""
        known = held.get(was) or by_original.get(was)
        continues = entry.parent is None or entry.parent in ours or entry.parent in held
        is_new = continues and entry.id not in held
        if is_new and known is not None and _same_content(known.body, entry.body):
            ours[entry.id] = known.id
    if not ours:
        return transcript
    renamed = rename_entries(transcript, ours)
    known_ids = set(ours.values())
    entries = (entry for entry in renamed.entries if entry.id not in known_ids)
    return msgspec.structs.replace(renamed, entries=(*(held[i] for i in known_ids), *entries))


def _with_original_ids(transcript: Transcript, held: Mapping[str, Entry]) -> Transcript:
    """But for notes: a derived id is how `rewind` tells that a note about a changed file came from
    elsewhere, and a file may be forged."""
    entries = (entry for entry in transcript.entries if not isinstance(entry.body, Note))
    new = [entry for entry in entries if entry.id not in held]
    given = {entry.id: original_id(transcript.format, entry.body) for entry in new}
    free = {id_: was for id_, was in given.items() if was and is_id(was) and was not in held}
    unique = len(set(free.values())) == len(free)
    return rename_entries(transcript, free) if free and unique else transcript


def _same_content(ours: Body, theirs: Body) -> bool:
    if isinstance(ours, Message) and isinstance(theirs, Message):
        return ours.role == theirs.role and ours.parts == theirs.parts
    return type(ours) is type(theirs)


def describe_session(transcript: Transcript, held: Mapping[str, Entry]) -> list[tuple[str, Body]]:
    """The title and the notes that the session lacks, with the ids of their entries; not a note
    that says only what another note of the session says already."""
    format_, ids = transcript.format, (transcript.format, transcript.session)
    mark = json_text({format_: {"header": True}})
    found: list[tuple[str, Body]] = []
    if title := transcript.heading:
        found.append((derived_id(*ids, "title", title), Title(title=title, extra=mark)))
    found += [(derived_id(*ids, "note", note.extra), note) for note in transcript.notes]
    new = [(id_, body) for id_, body in found if id_ not in held]
    said = [
        get_tag(format_, entry.body).items()
        for entry in (held.values() if new else ())
        if isinstance(entry.body, Note) and is_bookkeeping(transcript, entry)
    ]
    return [
        (id_, body)
        for id_, body in new
        if not isinstance(body, Note)
        or not any(get_tag(format_, body).items() <= other for other in said)
    ]


def _missing(
    transcript: Transcript,
    source: Entry | None,
    held: Mapping[str, Entry],
    main: list[str],
    fork: str | None,
) -> tuple[list[Entry], set[str]]:
    """What the session lacks, with the source before and title and notes after the new entries on
    the way to the leaf; and the ids of everything on that way."""
    spine, entries = set(main), [entry for entry in transcript.entries if entry.id not in held]
    last = transcript.leaf
    if source is not None:
        entries = [
            _with_parent(entry, source.id) if entry.parent == fork and entry.id in spine else entry
            for entry in entries
        ]
        entries.insert(0, _with_parent(source, fork))
        spine.add(source.id)
        last = source.id if fork == transcript.leaf else transcript.leaf
    time = transcript.updated
    for id_, body in describe_session(transcript, held):
        entries.append(Entry(id_, last, time, body))
        spine.add(id_)
        last = id_
    return entries, spine


def shares_history(transcript: Transcript, tree: Sequence[Entry]) -> bool:
    """Whether the session of these entries has any of the file's, or the file has none."""
    held = {entry.id: entry for entry in tree}
    if not transcript.entries or any(entry.id in held for entry in transcript.entries):
        return True
    return any(entry.id in held for entry in _with_our_ids(transcript, held).entries)


def _with_parent(entry: Entry, parent: str | None) -> Entry:
    return Entry(entry.id, parent, entry.time, entry.body)


def _group_runs(missing: Sequence[Entry], spine: set[str]) -> tuple[AppendRun, ...]:
    missing = sorted(missing, key=lambda entry: entry.id in spine)
    children: dict[str | None, list[Entry]] = {}
    for entry in missing:
        children.setdefault(entry.parent, []).append(entry)
    new = {entry.id for entry in missing}
    runs: list[AppendRun] = []
    waiting = [entry for entry in reversed(missing) if entry.parent not in new]
    while waiting:
        start = at = waiting.pop()
        run = [at]
        while following := children.get(at.id):
            waiting += following[:0:-1]
            at = following[0]
            run.append(at)
        runs.append(AppendRun(start.parent, tuple(run)))
    return tuple(runs)


def _entries_after(path: Sequence[Entry], fork: str | None) -> Sequence[Entry] | None:
    """The part of our path after an entry; None if the entry is not on it."""
    ids = [None, *(entry.id for entry in path)]
    return path[ids.index(fork) :] if fork in ids else None


def is_bookkeeping(transcript: Transcript, entry: Entry) -> bool:
    """Whether an import wrote it about the file itself, not about what happened."""
    body = entry.body
    about = isinstance(body, Title | Note) and "header" in get_tag(transcript.format, body)
    return about or isinstance(body, Source)


def _accounts_for(transcript: Transcript, tail: Sequence[Entry], main: set[str]) -> bool:
    """Whether the file accounts for all of these entries that it would leave behind."""
    theirs = {entry.id for entry in transcript.entries}
    later: dict[int, list[Body]] = {}
    for entry in transcript.entries:
        if entry.id in main:
            later.setdefault(entry.time, []).append(entry.body)
    for entry in tail:
        joined = "joined" in get_tag(transcript.format, entry.body)
        if entry.id in theirs or joined or is_bookkeeping(transcript, entry):
            continue
        candidates = later.get(entry.time, ())[:CANDIDATES]
        if not any(_continues(entry.body, body) for body in candidates):
            return False
    return True


def _continues(before: Body, now: Body) -> bool:
    """Whether a message is a later state of another: it has all of that one, and perhaps more."""
    return EarlierState.of(before).is_continued_by(now)


class EarlierState(NamedTuple):
    """What is needed of a body, and no more, to tell a later state of it."""

    kind: type[Body]
    role: str = ""
    calls: frozenset[str] = frozenset()
    length: int = 0  # of the text
    digest: bytes = b""

    @classmethod
    def of(cls, body: Body) -> EarlierState:
        if not isinstance(body, Message):
            return cls(type(body))
        text = _text_of(body)
        return cls(Message, body.role, _calls_of(body), len(text), _digest(text))

    def is_continued_by(self, now: Body) -> bool:
        """Whether a message has all of this one, and perhaps more."""
        if self.kind is not Message or not isinstance(now, Message):
            return self.kind is type(now)
        begins_alike = _digest(_text_of(now)[: self.length]) == self.digest
        return self.role == now.role and self.calls <= _calls_of(now) and begins_alike


def _text_of(message: Message) -> str:
    return "".join([part.text for part in message.parts if isinstance(part, Text)])


def _calls_of(message: Message) -> frozenset[str]:
    return frozenset([part.id for part in message.parts if isinstance(part, ToolCall)])


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()
