"""The lines of a file that a call chooses by their numbers, under any agent's names for them.

`start_line` and `end_line`, one of them alone, or `view_range`, whose end may be -1 for the last
line. Lines are counted from 1, both ends included. Anything unclear is no range: the caller
refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_STARTS = ("start_line", "start", "line_start", "starting_line", "start_line_one_indexed")
_ENDS = ("end_line", "end", "line_end", "ending_line", "end_line_one_indexed_inclusive")
_RANGE = "view_range"
_NAMES = frozenset((*_STARTS, *_ENDS, _RANGE))
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


class LineRange(NamedTuple):
    """Lines from 1, both ends included; None: from the first, or to the last."""

    start: int | None
    end: int | None

    @property
    def length(self) -> int | None:
        return None if self.end is None else self.end - (self.start or 1) + 1


def snake_case(name: str) -> str:
    """`filePath` as `file_path`."""
    return _HUMP.sub(r"_\1", name[:100]).lower()


def names_lines(key: str) -> bool:
    """Whether an argument of this name chooses lines."""
    return snake_case(key) in _NAMES


def parse_line_range(arguments: Mapping[str, Any]) -> LineRange | None:
    """The lines that arguments choose, by the names above; None if that is unclear."""
    given = [(snake_case(k), v) for k, v in arguments.items() if names_lines(k) and v is not None]
    starts = [value for name, value in given if name in _STARTS]
    ends = [value for name, value in given if name in _ENDS]
    if len(starts) > 1 or len(ends) > 1 or (len(given) > 1 and len(starts) + len(ends) < 2):
        return None
    if given and given[0][0] == _RANGE:
        pair = given[0][1]
        if not isinstance(pair, list) or len(pair) != 2:
            return None
        starts, ends = [pair[0]], [pair[1]] if pair[1] != -1 else []
    return _checked_range(starts, ends)


def _checked_range(starts: list[Any], ends: list[Any]) -> LineRange | None:
    numbers = [_parse_number(value) for value in (*starts, *ends)]
    if any(number is None or number < 1 for number in numbers):
        return None
    chosen = LineRange(
        numbers[0] if starts else None,
        numbers[-1] if ends else None,
    )
    return None if chosen.length is not None and chosen.length < 1 else chosen


def _parse_number(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
