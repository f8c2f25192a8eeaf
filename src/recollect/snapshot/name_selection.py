"""Which files and names go into a snapshot when there is room for only some of them.

The more often a name was seen, and the more recently, the likelier it is needed next. A name under
a file serves twice: readers who need the name, and readers who need it in that file. The selection
is greedy by value per character, and a name that is already in the text is worth nothing a second
time. Deterministic; at most `MAX_CANDIDATES` candidates are weighed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from recollect.snapshot.code_names import FoundNames
from recollect.snapshot.file_section import (
    FileGroup,
    FileLine,
    directory_name,
    file_heading,
    file_name,
    group_heading,
)
from recollect.snapshot.ledger import FileFacts, Ledger

MAX_CANDIDATES = 6_000
# The value of a file, a dotted name, an identifier with its file and a dotted name with its file,
# when an identifier by itself is worth 1.
_FILE, _CHAIN, _PAIR, _DOTTED_PAIR = 1.8, 1.8, 1.6, 0.1
# Exponents of use and of age in calls. A task's description ages more slowly. All weights were
# tuned by hand at 41 overlapping points of three sessions of one project, against the 30 calls
# after each; on other sessions expect a few hundredths less.
_OFTEN, _OLD, _SLOWLY, _DESCRIBED = 0.5, 0.8, 0.5, 0.45
_DEFINED = 1.8  # a name that the file defines, compared with one it uses
_TOUCHED = 0.2  # a passage, for a file whose own names are known
_MAX_FILES = 6  # of a passage
_SAME_NAME = 0.2  # a file that was only listed, when another of that name is in the text
_LINE = 1.05  # cost of a name per character: lines are wrapped now and then


class NameSelection(NamedTuple):
    files: list[FileLine]
    groups: list[FileGroup]
    loose: list[str]  # names without a file


class _NameSlot(NamedTuple):
    """A place for names: with a file, with the files of a passage, or with none."""

    files: tuple[str, ...] = ()
    heading: str = ""
    directory: str = ""
    facts: FileFacts | None = None
    value: float = 0.0  # of the slot without any name


class _NameCandidate(NamedTuple):
    slot: int
    name: str  # empty: the slot itself


def estimate_need(weight: float, last: int, now: int) -> float:
    """Proportional to a probability."""
    return float(max(weight, 0.01) ** _OFTEN / (1 + max(0, now - last)) ** _OLD)


def select_names(ledger: Ledger, room: int, standing: FoundNames) -> NameSelection:
    """`standing` are the names that the rest of the snapshot holds anyway."""
    selector = _NameSelector(ledger, standing)
    selector.fill(room)
    return selector.selection()


class _NameSelector:
    def __init__(self, ledger: Ledger, standing: FoundNames) -> None:
        self.ledger, now = ledger, ledger.now
        self.worth = {t.name: estimate_need(t.weight, t.last, now) for t in ledger.names}
        self.worth |= {t.name: _CHAIN * estimate_need(t.weight, t.last, now) for t in ledger.chains}
        self.covered: set[str] = {*standing.words, *standing.chains}
        self.paired: set[tuple[str, str]] = set()
        self.pairs: dict[tuple[str, str], float] = {}
        self.slots = [_NameSlot()]
        self.candidates: list[_NameCandidate] = []
        self.taken: dict[int, list[str]] = {}
        self.directories: set[str] = set()
        self.named: set[str] = set()
        self._list_files()
        self._list_passages()
        tied = {c.name for c in self.candidates}
        self.candidates += (_NameCandidate(0, name) for name in self.worth if name not in tied)

    def _list_files(self) -> None:
        now = self.ledger.now
        for file in self.ledger.files:
            value = _FILE * estimate_need(file.weight, file.last, now)
            directory = directory_name(file.path)
            slot = _NameSlot((file.path,), file_heading(file), directory, file, value)
            self._list_slot(slot, ["", *(tally.name for tally in file.names)])
            defines = set(file.defines)
            for tally in file.names:
                worth = estimate_need(tally.weight, tally.last, now) * _pair_value(tally.name)
                worth *= _DEFINED if tally.name in defines else 1.0
                self.pairs[file.path, tally.name] = worth

    def _list_slot(self, slot: _NameSlot, names: Iterable[str]) -> None:
        self.candidates += (_NameCandidate(len(self.slots), name) for name in names)
        self.slots.append(slot)

    def _list_passages(self) -> None:
        touched = {file.path: file.touched for file in self.ledger.files}
        for passage in self.ledger.passages:
            # files that were read or changed have names of their own; others have only these
            files = sorted(passage.files, key=lambda path: touched.get(path, False))[:_MAX_FILES]
            value = estimate_need(1.0, passage.last, self.ledger.now) ** _SLOWLY * _DESCRIBED
            slot = _NameSlot(tuple(files), group_heading(tuple(files)))
            self._list_slot(slot, passage.names)
            for name in passage.names:
                for path in files:
                    worth = value * _pair_value(name) * (_TOUCHED if touched.get(path) else 1.0)
                    self.pairs[path, name] = max(worth, self.pairs.get((path, name), 0.0))

    def fill(self, room: int) -> None:
        candidates = self.candidates
        if len(candidates) > MAX_CANDIDATES:
            candidates = heapq.nlargest(
                MAX_CANDIDATES, candidates, key=lambda c: (self._value(c), c)
            )
        heap = [(-self._density(c), n, c) for n, c in enumerate(candidates)]
        heapq.heapify(heap)
        while heap and room > 0:
            before, number, candidate = heapq.heappop(heap)
            density = self._density(candidate)
            if density <= 0:
                continue
            # candidates chosen meanwhile may have lowered this one's value
            if heap and density < -before * 0.999 and density < -heap[0][0]:
                heapq.heappush(heap, (-density, number, candidate))
            elif (cost := self._cost(candidate)) <= room:
                room -= cost
                self._take(candidate)

    def _value(self, candidate: _NameCandidate) -> float:
        if not candidate.name:
            return self._slot_value(candidate.slot)
        value, files = 0.0, self.slots[candidate.slot].files
        for part in _names_served(candidate.name):
            if part not in self.covered:
                value += self.worth.get(part, 0.0)
            for path in files:
                if (path, part) not in self.paired:
                    value += self.pairs.get((path, part), 0.0)
        return value

    def _slot_value(self, at: int) -> float:
        facts, value = self.slots[at].facts, self.slots[at].value
        if at in self.taken or facts is None:
            return 0.0
        again = not facts.touched and file_name(facts.path) in self.named
        return value * (_SAME_NAME if again else 1.0)

    def _cost(self, candidate: _NameCandidate) -> int:
        cost = int((len(candidate.name) + 1) * _LINE + 0.5) if candidate.name else 0
        if candidate.slot == 0 or candidate.slot in self.taken:
            return cost
        slot = self.slots[candidate.slot]
        new = slot.directory and slot.directory not in self.directories
        return cost + len(slot.heading) + 2 + (len(slot.directory) + 1 if new else 0)

    def _density(self, candidate: _NameCandidate) -> float:
        return self._value(candidate) / max(1, self._cost(candidate))

    def _take(self, candidate: _NameCandidate) -> None:
        slot = self.slots[candidate.slot]
        self.directories.add(slot.directory)
        self.named.update(map(file_name, slot.files))
        names = self.taken.setdefault(candidate.slot, [])
        if not candidate.name:
            return
        names.append(candidate.name)
        for part in _names_served(candidate.name):
            self.covered.add(part)
            self.paired.update((path, part) for path in slot.files)

    def selection(self) -> NameSelection:
        files: list[FileLine] = []
        groups: list[FileGroup] = []
        for at in sorted(self.taken):  # newest first, as in the ledger
            slot, names = self.slots[at], self.taken[at]
            if slot.facts is not None:
                defines = set(slot.facts.defines)
                inside = tuple(name for name in names if name in defines)
                others = tuple(name for name in names if name not in defines)
                files.append(FileLine(slot.facts, inside, others))
            elif at:
                groups.append(FileGroup(slot.files, tuple(names)))
        return NameSelection(files, groups, self.taken.get(0, []))


def _pair_value(name: str) -> float:
    return _DOTTED_PAIR if "." in name else _PAIR


@lru_cache(maxsize=50_000)
def _names_served(name: str) -> tuple[str, ...]:
    """The names that a name serves: itself, its words, and the shorter chains it begins with."""
    if "." not in name:
        return (name,)
    pieces = name.split(".")
    chains = (".".join(pieces[:n]) for n in range(2, len(pieces) + 1))
    return (*chains, *pieces)
