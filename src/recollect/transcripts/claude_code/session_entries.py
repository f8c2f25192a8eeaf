"""The entries of a session's file, made from its records whenever they are needed, so that a file
of any size takes little memory: numbers for each turn, and one turn at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
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
from recollect.transcripts.claude_code.turn_entries import PrecedingEntry, TurnEntries
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.run_order import order_runs
from recollect.transcripts.transcript import EntryRun

_COMPACTS = (BOUNDARY, SUMMARY)


class SessionEntries:
    """Implements `transcript.EntryStream`."""

    def __init__(self, records: RecordSource, tree: RecordTree, session: str, start: int) -> None:
        self._records, self._tree, self._session, self._start = records, tree, session, start

    def __iter__(self) -> Iterator[Entry]:
        walk = _TurnWalk(self._builder(), self._tree.parents)
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
        walk = _TurnWalk(self._builder(), self._tree.parents, self._tree.leaf)
        for turn in self._tree.order:
            walk.visit(turn)
        return walk.leaf.id if walk.leaf else None

    def load(self) -> tuple[tuple[Entry, ...], str | None]:
        """All entries, and the id of the leaf."""
        walk = _TurnWalk(self._builder(), self._tree.parents, self._tree.leaf)
        entries = tuple(entry for turn in self._tree.order for entry in walk.visit(turn))
        return entries, walk.leaf.id if walk.leaf else None

    def runs(self) -> list[EntryRun]:
        counts = self._measured[0]
        ends, parents = array("q"), array("q", self._tree.parents)
        ends = array("q", [NONE]) * len(counts)  # the turn with the last entry so far
        for turn in self._tree.order:
            above = parents[turn]
            parents[turn] = ends[above] if above != NONE else NONE
            ends[turn] = turn if counts[turn] else parents[turn]
        on_path = bytearray(len(counts))
        at = NONE if self._tree.leaf is None else ends[self._tree.leaf]
        while at != NONE:
            on_path[at] = True
            at = parents[at]
        turns = array("q", (turn for turn in self._tree.order if counts[turn]))
        walk = _TurnWalk(self._builder(), parents)
        return [
            EntryRun(
                starts_path=bool(on_path[run[0]]) and parents[run[0]] == NONE,
                entries=self._weigh(walk, run),
            )
            for run in order_runs(turns, parents, on_path)
        ]

    def _builder(self) -> TurnEntries:
        return TurnEntries(self._records, self._tree, self._session, self._start)

    def _weigh(self, walk: _TurnWalk, turns: Sequence[int]) -> Iterator[tuple[Entry, int]]:
        numbers, size_of = self._tree.index.numbers, self._records.size
        for turn in turns:
            size = sum([size_of(numbers[member]) for member in self._tree.members(turn)])
            for entry in walk.visit(turn):
                yield entry, size
                size = 0

    @cached_property
    def _measured(self) -> tuple[array[int], int]:
        """The number of entries of each turn, and the latest time of any."""
        if self._tree.index.is_plain:
            return self._measure_plainly()
        walk, latest = _TurnWalk(self._builder(), self._tree.parents), list[int]()
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


class _TurnWalk:
    """Visits turns, parents first, and remembers the last entry of those that others follow."""

    def __init__(
        self, builder: TurnEntries, parents: Sequence[int], leaf: int | None = None
    ) -> None:
        self._builder, self._parents, self._leaf = builder, parents, leaf
        self._ends: dict[int, PrecedingEntry | None] = {}
        self._awaited = array("q", [0]) * len(parents)  # the turns that are still to follow each
        for parent in parents:
            if parent != NONE:
                self._awaited[parent] += 1
        self.leaf: PrecedingEntry | None = None

    def visit(self, turn: int) -> list[Entry]:
        parent, end = self._parents[turn], None
        if parent != NONE:
            end = self._ends[parent]
            self._awaited[parent] -= 1
            if not self._awaited[parent]:
                del self._ends[parent]
        entries = self._builder.build(turn, end)
        if self._awaited[turn] or turn == self._leaf:
            if entries:
                end = PrecedingEntry(entries[-1].id, entries[-1].time)
            if self._awaited[turn]:
                self._ends[turn] = end
            if turn == self._leaf:
                self.leaf = end
        return entries
