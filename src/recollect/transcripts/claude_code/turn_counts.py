"""How many entries each turn of Claude Code's has, as far as it follows from what is known of the
records, without reading them again."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from recollect.transcripts.claude_code.record_index import (
    ASSISTANT,
    BOUNDARY,
    NO_TIME,
    NONE,
    SUMMARY,
    USER,
)
from recollect.transcripts.claude_code.record_tree import RecordTree
from recollect.transcripts.session_entries import TurnCounts

_COMPACTS = (BOUNDARY, SUMMARY)


def count_entries(tree: RecordTree, start: int) -> TurnCounts | None:
    """None if the entries have to be made for it."""
    if not tree.index.is_plain:
        return None
    counts, ends = (array("q", [first]) * len(tree) for first in (0, start))
    latest, times = NO_TIME, tree.index.times
    for turn in tree.order:
        parent, heads = tree.parents[turn], _heads(tree, turn)
        time = ends[parent] if parent != NONE else start
        for member in heads:
            given = times[member]
            time = time if given == NO_TIME else given
            latest = time if time > latest else latest
        counts[turn], ends[turn] = len(heads), time
    return TurnCounts(counts, None if latest == NO_TIME else latest)


def _heads(tree: RecordTree, turn: int) -> Sequence[int]:
    """The first record of each entry of a turn."""
    kinds, members = tree.index.kinds, tree.members(turn)
    if len(members) == 1:
        return members
    for kind in _COMPACTS:
        if found := [member for member in members if kinds[member] == kind]:
            return found[:1]
    replies = [member for member in members if kinds[member] == ASSISTANT]
    return replies[:1] + [member for member in members if kinds[member] == USER]
