"""The entries of a session's file, made from its records whenever they are needed, so that a file
of any size takes little memory: numbers for each turn, and one turn at a time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from recollect.entries import Entry
from recollect.transcripts.claude_code.record_index import (
    ASSISTANT,
    BOUNDARY,
    NO_TIME,
    NONE,
    SUMMARY,
    USER,
)
from recollect.transcripts.claude_code.record_tree import RecordTree
from recollect.transcripts.claude_code.session_comparison import SessionComparison
from recollect.transcripts.claude_code.turn_entries import TurnEntries
from recollect.transcripts.claude_code.turn_walk import TurnWalk, plan_runs
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.transcript import EntryRun, MissingEntries

_COMPACTS = (BOUNDARY, SUMMARY)


class SessionEntries:
    """Implements `transcript.EntryStream`."""

    def __init__(self, records: RecordSource, tree: RecordTree, session: str, start: int) -> None:
        self._records, self._tree, self._session, self._start = records, tree, session, start

    def __iter__(self) -> Iterator[Entry]:
        walk = TurnWalk(self._builder(), self._tree.parents)
        return (entry for turn in self._tree.order for entry in walk.visit(turn))

    def __len__(self) -> int:
        return sum(self._measured[0])

    def __bool__(self) -> bool:
        return len(self) > 0

    @property
    def updated(self) -> int:
        return self._measured[1]

    def end_with_leaf(self) -> bool:
        """Whether the leaf has entries, as almost every one has; `runs` relies on it."""
        return self._tree.leaf is None or self._measured[0][self._tree.leaf] > 0

    def find_leaf(self) -> str | None:
        walk = TurnWalk(self._builder(), self._tree.parents, self._tree.leaf)
        for turn in self._tree.order:
            walk.visit(turn)
        return walk.leaf.id if walk.leaf else None

    def load(self) -> tuple[tuple[Entry, ...], str | None]:
        """All entries, and the id of the leaf."""
        walk = TurnWalk(self._builder(), self._tree.parents, self._tree.leaf)
        entries = tuple(entry for turn in self._tree.order for entry in walk.visit(turn))
        return entries, walk.leaf.id if walk.leaf else None

    def runs(self) -> list[EntryRun]:
        counts = self._measured[0]
        return plan_runs(self._builder(), counts, array("q", [0]) * len(counts), {})

    def compare(self, is_held: Callable[[str], bool]) -> MissingEntries:
        return SessionComparison(self._builder(), is_held)

    def _builder(self) -> TurnEntries:
        return TurnEntries(self._records, self._tree, self._session, self._start)

    @cached_property
    def _measured(self) -> tuple[array[int], int]:
        """The number of entries of each turn, and the latest time of any."""
        if self._tree.index.is_plain:
            return self._measure_plainly()
        walk, latest = TurnWalk(self._builder(), self._tree.parents), list[int]()
        counts = array("q", [0]) * len(self._tree)
        for turn in self._tree.order:
            entries = walk.visit(turn)
            counts[turn] = len(entries)
            latest = [max([*latest, *(entry.time for entry in entries)])] if entries else latest
        return counts, latest[0] if latest else self._start

    def _measure_plainly(self) -> tuple[array[int], int]:
        """As far as it follows from what is known of the records, without reading them again."""
        tree, ends = self._tree, array("q", [self._start]) * len(self._tree)
        counts, latest, times = array("q", [0]) * len(tree), NO_TIME, tree.index.times
        for turn in tree.order:
            parent, heads = tree.parents[turn], self._heads(turn)
            time = ends[parent] if parent != NONE else self._start
            for member in heads:
                given = times[member]
                time = time if given == NO_TIME else given
                latest = time if time > latest else latest
            counts[turn], ends[turn] = len(heads), time
        return counts, self._start if latest == NO_TIME else latest

    def _heads(self, turn: int) -> Sequence[int]:
        """The first record of each entry of a turn."""
        kinds, members = self._tree.index.kinds, self._tree.members(turn)
        if len(members) == 1:
            return members
        for kind in _COMPACTS:
            if found := [member for member in members if kinds[member] == kind]:
                return found[:1]
        replies = [member for member in members if kinds[member] == ASSISTANT]
        return replies[:1] + [member for member in members if kinds[member] == USER]
