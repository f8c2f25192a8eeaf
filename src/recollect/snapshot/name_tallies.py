"""Counting names while a log is folded: each by itself, and each with the files near it.

A name that appears many times in one record counts once. What an agent does and says weighs more
than what a tool prints. The names and lines read of one record are bounded, so a hostile record can
neither crowd out nor slow down the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from recollect.snapshot.code_names import FoundNames, find_names, merge_names, take_ends
from recollect.snapshot.ledger import Tally

_MAX_NAMES = 3_000  # of one record
_MAX_LINES = 1_500  # of one record that are searched for mentions of files
_MAX_FILES, _MAX_NEAR, _MAX_MENTIONS = 20, 150, 400  # of a line, of its names, of a record
_GAP = 8  # after so many lines without a file another passage begins
_AROUND = 2  # names so many lines before and after a mention of a file belong to it
LINKED = 0.2  # share of a name's weight when it is only near a file's name


class NameCounter:
    """Names to [count, last]. Grows only."""

    def __init__(self) -> None:
        self.of: dict[str, list[float]] = {}

    def add(self, names: Iterable[str], weight: float, now: int) -> None:
        for name in names:
            tally = self.of.setdefault(name, [0.0, now])
            tally[0] += weight
            tally[1] = max(tally[1], now)

    def tallies(self) -> tuple[Tally, ...]:
        """Newest first, then the most frequent, then by name, so that the order is fixed."""
        found = (Tally(name, round(c, 3), int(last)) for name, (c, last) in self.of.items())
        return tuple(sorted(found, key=lambda t: (-t.last, -t.weight, t.name)))


class NameTallies:
    def __init__(self) -> None:
        self.words = NameCounter()
        self.chains = NameCounter()
        self.by_file: defaultdict[str, NameCounter] = defaultdict(NameCounter)
        self.mentions = NameCounter()

    def count(
        self, found: FoundNames, weight: float, now: int, files: tuple[str, ...] = ()
    ) -> None:
        """Count the names of one text, and link them to the files it belongs to."""
        words, chains = (sorted(names)[:_MAX_NAMES] for names in (found.words, found.chains))
        self.words.add(words, weight, now)
        self.chains.add(chains, weight, now)
        for file in files:
            self.link(file, words, weight, now)
            self.link(file, chains, weight, now)

    def link(self, file: str, names: Iterable[str], weight: float, now: int) -> None:
        self.by_file[file].add(names, weight, now)


def find_mentions(found: list[FoundNames]) -> list[tuple[str, FoundNames]]:
    """Each file that the lines of a text mention, with the names on the lines around it."""
    mentions: list[tuple[str, FoundNames]] = []
    for number, names in enumerate(found):
        if names.files:
            around = found[max(0, number - _AROUND) : number + _AROUND + 1]
            # names on a line that mentions another file belong to that file
            near = merge_names([n for n in around if n is names or not n.files])
            near = FoundNames(_cap_near(near.words), _cap_near(near.chains), near.files)
            mentions += ((file, near) for file in sorted(names.files)[:_MAX_FILES])
    return mentions[:_MAX_MENTIONS]


def _cap_near(names: frozenset[str]) -> frozenset[str]:
    return names if len(names) <= _MAX_NEAR else frozenset(sorted(names)[:_MAX_NEAR])


def find_passages(found: list[FoundNames]) -> list[FoundNames]:
    """Runs of lines that name files together, with the names before, among and after them.

    Tasks are described like that: the files to change, and then what to do in them.
    """
    at = [number for number, names in enumerate(found) if names.files]
    starts = [n for before, n in zip([-_GAP - 1, *at], at, strict=False) if n - before > _GAP]
    cuts = [max(0, start - _AROUND) for start in starts] + [len(found)]
    if cuts:
        cuts[0] = max(0, cuts[0] - _GAP)
    return [merge_names(found[a:b]) for a, b in pairwise(cuts)]


def find_names_by_line(text: str) -> list[FoundNames]:
    return [find_names(line) for line in take_ends(text, 60_000).split("\n")[:_MAX_LINES]]


def is_prose(text: str) -> bool:
    """Whether a text is written for people, like a task's description, and not a log or listing."""
    lines = [line.strip() for line in text[:20_000].split("\n") if line.strip()]
    if any(line.startswith("@@ ") for line in lines):
        return False  # a patch is full of dashes
    marked = sum(
        line.startswith(("#", "- ", "* ", "1.", "2.", "3.")) or "`" in line for line in lines
    )
    return len(lines) > 3 and marked >= 0.25 * len(lines)
