"""What a session lacks of a file: found by making every entry once, and keeping numbers only."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

from recollect.entries import Entry
from recollect.transcripts.run_order import NO_PARENT
from recollect.transcripts.transcript import EntryRun
from recollect.transcripts.turn_walk import (
    PrecedingEntry,
    TurnBuilder,
    TurnWalk,
    is_last,
    plan_runs,
)


class SessionComparison:
    """Implements `transcript.MissingEntries`."""

    def __init__(self, builder: TurnBuilder, is_held: Callable[[str], bool]) -> None:
        self._builder, tree = builder, builder.tree
        self._counts, self._held = (array("q", [0]) * len(tree) for _ in range(2))
        self._ends: dict[int, PrecedingEntry | None] = {}  # of turns that missing ones follow
        self.is_closed = True
        self.fork: str | None = None
        self._compare(is_held)
        self.ends_with_leaf = is_last(tree, tree.leaf)
        self.held = sum(self._held)
        self.count = sum(self._counts) - self.held

    def runs(self) -> list[EntryRun]:
        return plan_runs(self._builder, self._counts, self._held, self._ends)

    def main(self) -> Iterator[Entry]:
        above: PrecedingEntry | None = None
        for turn in self._path():
            for entry in self._builder.build(turn, above):
                above = PrecedingEntry(entry.id, entry.time)
                yield entry

    def _path(self) -> Sequence[int]:
        """The turns up to the leaf."""
        tree, path = self._builder.tree, array("q")
        at = NO_PARENT if tree.leaf is None else tree.leaf
        while at != NO_PARENT:
            path.append(at)
            at = tree.parents[at]
        return path[::-1]

    def _compare(self, is_held: Callable[[str], bool]) -> None:
        tree, last = self._builder.tree, self._builder.tree.leaf
        walk = TurnWalk(self._builder, tree.parents, last)
        on_path, whole = bytearray(len(tree)), bytearray(len(tree))  # held up to its end
        nearest = array("q", [NO_PARENT]) * len(tree)  # the turn with the last entry up to its end
        for turn in self._path():
            on_path[turn] = True
        for turn in tree.order:
            parent, above = tree.parents[turn], walk.above(turn)
            entries = walk.visit(turn)
            found = [is_held(entry.id) for entry in entries]
            count, follows = sum(found), parent == NO_PARENT or bool(whole[parent])
            self._counts[turn], self._held[turn] = len(entries), count
            self.is_closed &= not count or (follows and all(found[:count]))
            whole[turn] = follows and count == len(entries)
            over = NO_PARENT if parent == NO_PARENT else nearest[parent]
            nearest[turn] = turn if entries else over
            if follows and not whole[turn] and over != NO_PARENT:
                self._ends[over] = above
            if on_path[turn] and count:
                self.fork = entries[count - 1].id
        self.leaf = walk.leaf.id if walk.leaf else None
