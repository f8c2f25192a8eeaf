"""The tree that Claude Code's records form: which belong together, and what follows what.

A parent that is not in the file is replaced by the record before, as is a boundary's missing one; a
circle is cut open. A boundary that keeps messages comes after the last of them, and records that
the file attaches to that last one from then on come after the boundary: so the messages that a
compaction kept are above it. All of it is linear in the number of records, and made of numbers.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count
from operator import lt

from recollect.transcripts.claude_code.record_index import (
    BOUNDARY,
    NONE,
    ODD,
    SUMMARY,
    RecordIndex,
)
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.transcript import ImportProblem

_UNKNOWN = -2
_COMPACTS = (BOUNDARY, SUMMARY)


class RecordTree:
    """Turns: records that belong together. Another turn continues after the last of them. Turns are
    numbered in the order of their first records in the file."""

    def __init__(self, index: RecordIndex, records: RecordSource) -> None:
        self.index, self._records = index, records
        self.problems: list[ImportProblem] = []
        above = self._resolve_parents()
        if not _are_earlier(above):
            self.problems += self._report_circles(above)
        turn_of = self._number_turns(above)
        self._group_members(turn_of)
        index.calls.settle(turn_of)
        owners = _inherit_turns(turn_of, above)
        self.parents = self._turn_parents(above, owners)  # of each turn
        self.order = _order_parents_first(self.parents)  # cuts circles open
        # whether any turn is a compaction
        self._compacts = any(kind in index.kinds for kind in _COMPACTS)
        self.kept = self._find_kept(owners)  # by compaction: the first turn that stays visible
        self.leaf = self._find_leaf()

    def __len__(self) -> int:
        return len(self.parents)

    def members(self, turn: int) -> array[int]:
        return self._members[self._first[turn] : self._first[turn + 1]]

    @cached_property
    def _spans(self) -> tuple[array[int], array[int]]:
        """Of the numbers that each turn has for itself and all turns below it: how many, and the
        first of them."""
        return _number_spans(self.parents, self.order)

    def is_above(self, turn: int, other: int) -> bool:
        sizes, starts = self._spans
        start = starts[turn]
        return turn != other and start <= starts[other] < start + sizes[turn]

    def compacts(self, turn: int) -> bool:
        return self._compacts and any(
            self.index.kinds[member] in _COMPACTS for member in self.members(turn)
        )

    def first_record(self) -> int | None:
        """The number in the source of the first record of the first turn."""
        return self.index.numbers[self._members[0]] if self._members else None

    def _resolve_parents(self) -> array[int]:
        """The record that each follows."""
        index, above = self.index, array("q")
        empty = index.record_of[index.names[""]] if "" in index.names else NONE
        uuids: list[str] = []
        moved: dict[int, int] = {}  # from the last message that a boundary kept to the boundary
        before = NONE
        for record, given in enumerate(index.given):
            parent = tail = index.last_kept.get(record, NONE)
            if tail == NONE and (given != NONE or index.kinds[record] == BOUNDARY):
                parent = index.record_of[given] if given >= 0 else NONE
                if parent == NONE:
                    uuids = uuids or list(index.names)
                    named = repr(uuids[given])[:60] if given >= 0 else "None"
                    named = index.odd_parents[record] if given == ODD else named
                    why = f"its parent {named} is not in the file; placed after the record before"
                    line = self._records.line(index.numbers[record])
                    self.problems.append(ImportProblem(line, f"{why} it"))
                    parent = before
            # a record without a name, "", cannot be followed
            above.append(NONE if parent in (NONE, empty) else moved.get(parent, parent))
            if tail != NONE:
                moved[tail] = record
            before = record
        return above

    def _report_circles(self, above: Sequence[int]) -> Iterator[ImportProblem]:
        """Records that are their own ancestors, by the first of each circle in the file."""
        walks = array("q", [NONE]) * len(above)  # the record where each walk began
        for start in range(len(above)):
            at = start
            while at != NONE and walks[at] == NONE:
                walks[at] = start
                at = above[at]
            if at != NONE and walks[at] == start:
                length, other = 1, above[at]
                while other not in (at, NONE):
                    length, other = length + 1, above[other]
                uuid = self._records.load(self.index.numbers[at])["uuid"]
                how = f"the parents of {length:,} records form a circle with {uuid!r:.60}"
                yield ImportProblem(0, f"{how}; it was cut open")

    def _number_turns(self, above: Sequence[int]) -> array[int]:
        """The turn of each record; none for records that are part of no turn."""
        index, keys, kinds = self.index, self.index.keys, self.index.kinds
        for record, calls in index.waiting.items():
            known = (key for call in calls if (key := index.calls.reply(call)) is not None)
            keys[record] = next(known, record)
        turns, turn_of, found = array("q", [NONE]) * len(keys), array("q"), 0
        for record, own in enumerate(keys):
            key, parent = own, above[record]
            is_summary = kinds[record] == SUMMARY
            if is_summary and parent != NONE and kinds[parent] == BOUNDARY:
                key = parent
            if key != NONE and turns[key] == NONE:
                turns[key] = found
                found += 1
            turn_of.append(NONE if key == NONE else turns[key])
        return turn_of

    def _group_members(self, turn_of: Sequence[int]) -> None:
        """The records of all turns, one turn after the other, and where each begins."""
        last = max(turn_of, default=NONE)
        first = array("q", [0]) * (last + 2)
        for turn in turn_of:
            if turn != NONE:
                first[turn + 1] += 1
        for turn in range(last + 1):
            first[turn + 1] += first[turn]
        free, members = array("q", first), array("q", [0]) * first[-1]
        for record, turn in enumerate(turn_of):
            if turn != NONE:
                members[free[turn]] = record
                free[turn] += 1
        self._first, self._members = first, members

    def _turn_parents(self, above: Sequence[int], owners: Sequence[int]) -> array[int]:
        parents, start = array("q"), 0
        for turn, end in enumerate(self._first[1:]):
            parent = NONE
            for member in self._members[start:end]:
                found = owners[above[member]] if above[member] != NONE else NONE
                if found not in (NONE, turn):
                    parent = found
                    break
            parents.append(parent)
            start = end
        return parents

    def _find_kept(self, owners: Sequence[int]) -> dict[int, int]:
        """For each compaction the first turn above it that it keeps, if it keeps any.

        A turn is kept whole, because providers refuse a result without its call; and a mere link of
        the chain counts as the turn that it follows: rather one turn too many than one too few.
        """
        index, kept = self.index, dict[int, int]()
        if not self._compacts:
            return kept
        # the compaction above, or the root: where the live context begins
        since = array("q", [NONE]) * len(self)
        for turn in self.order:
            parent, compacts = self.parents[turn], self.compacts(turn)
            since[turn] = turn if parent == NONE or compacts else since[parent]
            if not compacts:
                continue
            members = self.members(turn)
            named = {
                owners[record]
                for member in members
                for name in index.preserved.get(member, ())
                if (record := index.record_of[name]) != NONE
            }
            found = [one for one in named if one != NONE and self.is_above(one, turn)]
            if found:
                kept[turn] = min(found, key=lambda one: self._spans[1][one])
            elif parent != NONE and any(member in index.keep_preceding for member in members):
                kept[turn] = since[parent]
        return kept

    def _find_leaf(self) -> int | None:
        """The last turn in the file that nothing continues; one the user saw, if there is one."""
        is_parent = bytearray(len(self))
        for parent in self.parents:
            if parent != NONE:
                is_parent[parent] = True

        def rank(turn: int) -> tuple[bool, int]:
            members = self.members(turn)
            return any(not self.index.are_meta[member] for member in members), max(members)

        ends = (turn for turn in range(len(self)) if not is_parent[turn])
        return max(ends, key=rank, default=None)


def _are_earlier(parents: Sequence[int]) -> bool:
    """Whether each parent has a smaller number than its child, as in most files."""
    return all(map(lt, parents, count()))


def _inherit_turns(turn_of: Sequence[int], above: Sequence[int]) -> array[int]:
    """The turn of each record; a mere link of the chain counts as the turn that it follows."""
    if NONE not in turn_of:
        return array("q", turn_of)
    found = array("q", (_UNKNOWN if turn == NONE else turn for turn in turn_of))
    for start in range(len(found)):
        walked: list[int] = []
        at = start
        while at != NONE and found[at] == _UNKNOWN:
            found[at] = NONE
            walked.append(at)
            at = above[at]
        for record in walked if at != NONE else ():
            found[record] = found[at]
    return found


def _order_parents_first(parents: array[int]) -> array[int]:
    """An order in which parents come before their children; a circle is cut open."""
    if _are_earlier(parents):
        return array("q", range(len(parents)))
    order, seen = array("q"), bytearray(len(parents))
    for start in range(len(parents)):
        walked: list[int] = []
        at = start
        while at != NONE and not seen[at]:
            seen[at] = 1
            walked.append(at)
            at = parents[at]
        if at != NONE and seen[at] == 1:  # on this walk
            parents[walked[-1]] = NONE
        order.extend(reversed(walked))
        for turn in walked:
            seen[turn] = 2
    return order


def _number_spans(parents: array[int], order: array[int]) -> tuple[array[int], array[int]]:
    sizes, starts = array("q", [1]) * len(parents), array("q", [0]) * len(parents)
    for turn in reversed(order):
        if parents[turn] != NONE:
            sizes[parents[turn]] += sizes[turn]
    free, root = array("q", [0]) * len(parents), 0  # the next number below each turn
    for turn in order:
        parent = parents[turn]
        if parent == NONE:
            first, root = root, root + sizes[turn]
        else:
            first, free[parent] = free[parent], free[parent] + sizes[turn]
        free[turn], starts[turn] = first + 1, first
    return sizes, starts
