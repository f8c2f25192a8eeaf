"""Sets of line ranges. Lines count from 1, ranges include both ends, None leaves an end open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

LineRange: TypeAlias = tuple[int | None, int | None]
_LAST_LINE = 1 << 60


class LineRanges(NamedTuple):
    spans: tuple[tuple[int, int], ...] = ()  # sorted, neither overlapping nor adjacent

    def with_ranges(self, ranges: Iterable[LineRange]) -> LineRanges:
        joined: list[tuple[int, int]] = []
        for first, last in sorted([*self.spans, *map(_closed_range, ranges)]):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return LineRanges(tuple(joined))

    def covers(self, ranges: Iterable[LineRange]) -> bool:
        return all(
            any(first >= a and last <= b for a, b in self.spans)
            for first, last in map(_closed_range, ranges)
        )


def _closed_range(given: LineRange) -> tuple[int, int]:
    first = 1 if given[0] is None else max(1, given[0])
    last = _LAST_LINE if given[1] is None else given[1]
    return first, max(first, last)
