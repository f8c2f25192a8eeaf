"""Which files and names go into a snapshot when there is room for only some of them.

How likely a name is needed next grows with how often it was met and falls with its age. A name
under a file serves twice: whoever needs the name, and whoever needs it in that file. The choice is
greedy by value per character, and what already stands in the text is worth nothing a second time.
Deterministic; at most `MAX_RECALL` candidates are weighed.
"""

from __future__ import annotations

import heapq
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
# What each kind of need is worth beside an identifier, which is worth 1: a file, a dotted name, an
# identifier with its file, a dotted name with its file.
_FILE, _CHAIN, _PAIR, _DOTTED_PAIR = 1.8, 1.8, 1.6, 0.1
# How need grows with use and falls with age in calls. A task's description ages more slowly. All
# weights were set by hand on 41 overlapping places in three sessions of one project, against the 30
# calls that followed each; on a session they were not set on, expect a few hundredths less.
_OFTEN, _OLD, _SLOWLY, _DESCRIBED = 0.5, 0.8, 0.5, 0.45
_DEFINED = 1.8  # a name that the file defines, beside one that it uses
_TOUCHED = 0.2  # what a passage tells about a file whose own names are known
_MOST_FILES = 6  # of a passage
_SAME_NAME = 0.2  # a file that was only listed, when another of its name is there
_LINE = 1.05  # what a name costs of its own length: lines are broken now and then


class NameSelection(NamedTuple):
    files: list[FileLine]
    passages: list[FileGroup]
    loose: list[str]  # names that stand with no file


class _NameSlot(NamedTuple):
    """Where names can stand: with a file, with the files of a passage, or with none."""

    files: tuple[str, ...] = ()
    opening: str = ""
    directory: str = ""
    facts: FileFacts | None = None


class _NameCandidate(NamedTuple):
    place: int
    name: str  # empty: the place itself
    alone: float  # what the place is worth without any name


def estimate_need(weight: float, last: int, now: int) -> float:
    """Not a probability, but in proportion to one."""
    return float(max(weight, 0.01) ** _OFTEN / (1 + max(0, now - last)) ** _OLD)


def select_names(ledger: Ledger, room: int, standing: FoundNames) -> NameSelection:
    """`standing` are the names that the rest of the snapshot holds anyway."""
    choosing = _NameSelector(ledger, standing)
    choosing.fill(room)
    return choosing.choice()


class _NameSelector:
    def __init__(self, ledger: Ledger, standing: FoundNames) -> None:
        self.ledger, now = ledger, ledger.now
        self.worth = {t.name: estimate_need(t.weight, t.last, now) for t in ledger.names}
        self.worth |= {t.name: _CHAIN * estimate_need(t.weight, t.last, now) for t in ledger.chains}
        self.covered: set[str] = {*standing.words, *standing.chains}
        self.paired: set[tuple[str, str]] = set()
        self.pairs: dict[tuple[str, str], float] = {}
        self.places = [_NameSlot()]
        self.candidates: list[_NameCandidate] = []
        self.taken: dict[int, list[str]] = {}
        self.directories: set[str] = set()
        self.named: set[str] = set()
        self._list_files()
        self._list_passages()
        tied = {c.name for c in self.candidates}
        self.candidates += (_NameCandidate(0, name, 0.0) for name in self.worth if name not in tied)

    def _list_files(self) -> None:
        now = self.ledger.now
        for file in self.ledger.files:
            value = estimate_need(file.weight, file.last, now)
            place = _NameSlot((file.path,), file_heading(file), directory_name(file.path), file)
            self.places.append(place)
            self.candidates.append(_NameCandidate(len(self.places) - 1, "", _FILE * value))
            defines = set(file.defines)
            for tally in file.names:
                worth = estimate_need(tally.weight, tally.last, now) * _pair_value(tally.name)
                worth *= _DEFINED if tally.name in defines else 1.0
                self.pairs[file.path, tally.name] = worth
                self.candidates.append(_NameCandidate(len(self.places) - 1, tally.name, 0.0))

    def _list_passages(self) -> None:
        touched = {file.path: file.touched for file in self.ledger.files}
        for passage in self.ledger.passages:
            # a file that was read or changed has names of its own; others have only these
            files = sorted(passage.files, key=lambda path: touched.get(path, False))[:_MOST_FILES]
            value = estimate_need(1.0, passage.last, self.ledger.now) ** _SLOWLY * _DESCRIBED
            self.places.append(_NameSlot(tuple(files), group_heading(tuple(files))))
            for name in passage.names:
                for path in files:
                    worth = value * _pair_value(name) * (_TOUCHED if touched.get(path) else 1.0)
                    self.pairs[path, name] = max(worth, self.pairs.get((path, name), 0.0))
                self.candidates.append(_NameCandidate(len(self.places) - 1, name, 0.0))

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
            # what was chosen meanwhile may have made this one less worthy
            if heap and density < -before * 0.999 and density < -heap[0][0]:
                heapq.heappush(heap, (-density, number, candidate))
            elif (cost := self._cost(candidate)) <= room:
                room -= cost
                self._take(candidate)

    def _value(self, candidate: _NameCandidate) -> float:
        if not candidate.name:
            return self._alone(candidate)
        value = candidate.alone
        files = self.places[candidate.place].files
        for part in _names_served(candidate.name):
            if part not in self.covered:
                value += self.worth.get(part, 0.0)
            for path in files:
                if (path, part) not in self.paired:
                    value += self.pairs.get((path, part), 0.0)
        return value

    def _alone(self, candidate: _NameCandidate) -> float:
        facts = self.places[candidate.place].facts
        if candidate.place in self.taken or facts is None:
            return 0.0
        again = not facts.touched and file_name(facts.path) in self.named
        return candidate.alone * (_SAME_NAME if again else 1.0)

    def _cost(self, candidate: _NameCandidate) -> int:
        cost = int((len(candidate.name) + 1) * _LINE + 0.5) if candidate.name else 0
        if candidate.place == 0 or candidate.place in self.taken:
            return cost
        place = self.places[candidate.place]
        new = place.directory and place.directory not in self.directories
        return cost + len(place.opening) + 2 + (len(place.directory) + 1 if new else 0)

    def _density(self, candidate: _NameCandidate) -> float:
        return self._value(candidate) / max(1, self._cost(candidate))

    def _take(self, candidate: _NameCandidate) -> None:
        place = self.places[candidate.place]
        self.directories.add(place.directory)
        self.named.update(map(file_name, place.files))
        names = self.taken.setdefault(candidate.place, [])
        if not candidate.name:
            return
        names.append(candidate.name)
        for part in _names_served(candidate.name):
            self.covered.add(part)
            self.paired.update((path, part) for path in place.files)

    def choice(self) -> NameSelection:
        files: list[FileLine] = []
        passages: list[FileGroup] = []
        for at in sorted(self.taken):  # as in the ledger: the newest first
            place, names = self.places[at], self.taken[at]
            if place.facts is not None:
                defines = set(place.facts.defines)
                inside = tuple(name for name in names if name in defines)
                others = tuple(name for name in names if name not in defines)
                files.append(FileLine(place.facts, inside, others))
            elif at:
                passages.append(FileGroup(place.files, tuple(names)))
        return NameSelection(files, passages, self.taken.get(0, []))


def _pair_value(name: str) -> float:
    return _DOTTED_PAIR if "." in name else _PAIR


@lru_cache(maxsize=50_000)
def _names_served(name: str) -> tuple[str, ...]:
    """What a name serves: itself, the words in it, and the shorter chains it begins with."""
    if "." not in name:
        return (name,)
    pieces = name.split(".")
    chains = (".".join(pieces[:n]) for n in range(2, len(pieces) + 1))
    return (*chains, *pieces)
