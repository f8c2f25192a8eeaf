"""Visits the turns of a file and makes their entries, in the order in which they are appended.

A turn is what becomes entries that follow each other: a record, or several that belong together.
What each format's turns are, and how their entries are made, is a `TurnBuilder`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from recollect.entries import Entry
from recollect.transcripts.run_order import NO_PARENT, order_runs
from recollect.transcripts.transcript import EntryRun


class PrecedingEntry(NamedTuple):
    """What an entry passes on to the next one."""

    id: str
    time: int


class TurnTree(Protocol):
    """Turns by their numbers, and what follows what."""

    def __len__(self) -> int: ...

    @property
    def parents(self) -> array[int]: ...

    @property
    def order(self) -> Sequence[int]:
        """Parents first."""
        ...

    @property
    def leaf(self) -> int | None: ...


class TurnBuilder(Protocol):
    """Makes the entries of turns; each turn after those above it."""

    @property
    def tree(self) -> TurnTree: ...

    def build(self, turn: int, above: PrecedingEntry | None) -> list[Entry]:
        """`above`: the last entry of the turn above it."""
        ...

    def size(self, turn: int) -> int:
        """The bytes of its records in the file, roughly."""
        ...


def is_last(tree: TurnTree, turn: int | None) -> bool:
    """Whether no turn follows this one."""
    return turn is None or turn not in tree.parents


class TurnWalk:
    """Visits turns, parents first, and remembers the last entry of those that others follow."""

    def __init__(
        self,
        builder: TurnBuilder,
        parents: Sequence[int],
        leaf: int | None = None,
        ends: Mapping[int, PrecedingEntry | None] | None = None,
    ) -> None:
        """`ends`: the last entries of turns that are not visited."""
        self._builder, self._parents, self._leaf = builder, parents, leaf
        self._ends = dict(ends or {})
        self._awaited = array("q", [0]) * len(parents)  # the turns that are still to follow each
        for parent in parents:
            if parent != NO_PARENT:
                self._awaited[parent] += 1
        self.leaf: PrecedingEntry | None = None

    def above(self, turn: int) -> PrecedingEntry | None:
        """The last entry before a turn that is visited next."""
        parent = self._parents[turn]
        return None if parent == NO_PARENT else self._ends[parent]

    def visit(self, turn: int) -> list[Entry]:
        parent, end = self._parents[turn], None
        if parent != NO_PARENT:
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


def plan_runs(
    builder: TurnBuilder,
    counts: Sequence[int],
    held: Sequence[int],
    ends: Mapping[int, PrecedingEntry | None],
) -> list[EntryRun]:
    """Of turns with so many entries, the runs without the first ones, which are `held`. `ends`: the
    last entries of turns that are held whole and that others follow."""
    tree = builder.tree
    parents, leaf = skip_empty(tree, counts)
    on_path = bytearray(len(counts))
    while leaf != NO_PARENT:
        on_path[leaf] = True
        leaf = parents[leaf]
    above = array("q", parents)
    for turn, parent in enumerate(parents):
        if parent != NO_PARENT and counts[parent] == held[parent]:
            above[turn] = NO_PARENT
    turns = array("q", (turn for turn in tree.order if counts[turn] > held[turn]))
    walk = TurnWalk(builder, parents, ends=ends)
    return [
        EntryRun(
            starts_path=bool(on_path[run[0]]) and above[run[0]] == NO_PARENT,
            entries=_make_entries(builder, walk, run, held),
        )
        for run in order_runs(turns, above, on_path)
    ]


def skip_empty(tree: TurnTree, counts: Sequence[int]) -> tuple[array[int], int]:
    """The nearest turn with entries above each turn, and up to the leaf."""
    parents = array("q", tree.parents)
    ends = array("q", [NO_PARENT]) * len(counts)  # the turn with the last entry so far
    for turn in tree.order:
        above = parents[turn]
        parents[turn] = ends[above] if above != NO_PARENT else NO_PARENT
        ends[turn] = turn if counts[turn] else parents[turn]
    return parents, NO_PARENT if tree.leaf is None else ends[tree.leaf]


def _make_entries(
    builder: TurnBuilder, walk: TurnWalk, turns: Sequence[int], held: Sequence[int]
) -> Iterator[tuple[Entry, int]]:
    for turn in turns:
        size = builder.size(turn)
        for entry in walk.visit(turn)[held[turn] :]:
            yield entry, size
            size = 0
