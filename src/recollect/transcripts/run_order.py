"""The order in which the entries of a tree are appended: in runs, each one after the other."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

NO_PARENT = -1


def order_runs(
    items: Sequence[int], parents: Sequence[int], on_path: bytearray
) -> list[array[int]]:
    """Chains of items that together hold every item once, parents first; the last ends where the
    path to the leaf ends. Items are numbers, given parents first; `parents` and `on_path` have
    something for each number, and the parent of an item is an item or `NO_PARENT`."""
    count = len(parents)
    first, last = array("q", [NO_PARENT]) * count, array("q", [NO_PARENT]) * count
    following, roots = array("q", [NO_PARENT]) * count, array("q")  # the next sibling
    for wanted in (False, True):  # the path comes after what branches off it
        for item in items:
            if bool(on_path[item]) is not wanted:
                continue
            parent = parents[item]
            if parent == NO_PARENT:
                roots.append(item)
            elif first[parent] == NO_PARENT:
                first[parent] = last[parent] = item
            else:
                following[last[parent]] = item
                last[parent] = item
    runs: list[array[int]] = []
    waiting = roots[::-1]
    while waiting:
        at = waiting.pop()
        run = array("q", [at])
        while (child := first[at]) != NO_PARENT:
            others, at = array("q"), child
            while (child := following[child]) != NO_PARENT:
                others.append(child)
            waiting.extend(others[::-1])
            run.append(at)
        runs.append(run)
    return runs
