"""The entries of a session's file, made from its records whenever they are needed, so that a file
of any size takes little memory: numbers for each turn, and one turn at a time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from recollect.entries import Entry
from recollect.transcripts.session_comparison import SessionComparison
from recollect.transcripts.transcript import EntryRun, MissingEntries
from recollect.transcripts.turn_walk import TurnBuilder, TurnTree, TurnWalk, is_last, plan_runs


class TurnCounts(NamedTuple):
    entries: Sequence[int]  # of each turn
    latest: int | None  # time of any entry


class SessionEntries:
    """Implements `transcript.EntryStream`."""

    def __init__(
        self,
        tree: TurnTree,
        start: int,
        new_builder: Callable[[], TurnBuilder],
        count: Callable[[], TurnCounts | None],
    ) -> None:
        """`start`: when the session began. `count`: without making the entries, if that can be."""
        self._tree, self._start, self._count = tree, start, count
        self._new_builder = new_builder

    def __iter__(self) -> Iterator[Entry]:
        walk = TurnWalk(self._new_builder(), self._tree.parents)
        return (entry for turn in self._tree.order for entry in walk.visit(turn))

    def __len__(self) -> int:
        return sum(self._counts.entries)

    def __bool__(self) -> bool:
        return len(self) > 0

    @property
    def updated(self) -> int:
        latest = self._counts.latest
        return self._start if latest is None else latest

    def has_leaf(self) -> bool:
        """Whether the leaf has entries, as almost every one has; `runs` relies on it."""
        return self._tree.leaf is None or self._counts.entries[self._tree.leaf] > 0

    @property
    def ends_with_leaf(self) -> bool:
        return is_last(self._tree, self._tree.leaf)

    def find_leaf(self) -> str | None:
        walk = TurnWalk(self._new_builder(), self._tree.parents, self._tree.leaf)
        for turn in self._tree.order:
            walk.visit(turn)
        return walk.leaf.id if walk.leaf else None

    def load(self) -> tuple[tuple[Entry, ...], str | None]:
        """All entries, and the id of the leaf."""
        walk = TurnWalk(self._new_builder(), self._tree.parents, self._tree.leaf)
        entries = tuple(entry for turn in self._tree.order for entry in walk.visit(turn))
        return entries, walk.leaf.id if walk.leaf else None

    def runs(self) -> list[EntryRun]:
        counts = self._counts.entries
        return plan_runs(self._new_builder(), counts, array("q", [0]) * len(counts), {})

    def compare(self, is_held: Callable[[str], bool]) -> MissingEntries:
        return SessionComparison(self._new_builder(), is_held)

    @cached_property
    def _counts(self) -> TurnCounts:
        if (counted := self._count()) is not None:
            return counted
        walk, latest = TurnWalk(self._new_builder(), self._tree.parents), list[int]()
        counts = array("q", [0]) * len(self._tree)
        for turn in self._tree.order:
            entries = walk.visit(turn)
            counts[turn] = len(entries)
            latest = [max([*latest, *(entry.time for entry in entries)])] if entries else latest
        return TurnCounts(counts, latest[0] if latest else None)
