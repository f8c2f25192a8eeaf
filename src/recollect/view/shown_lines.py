"""Which lines of a file a tool result showed, judged by the result itself.

The evidence is the header of our own `read_file`, line numbers (`12→code`, as of `cat -n`, and
other programs' forms), and notices such as "showing lines 1-2000 of 5000". The request counts only
in one case: a text without any evidence and without a notice that it was cut shows its own number
of lines from the start if the whole file was requested. Everything else is undetermined (None),
above all numbers at the beginning of lines that do not count on: they may be the file's own.
A text of which only the ends are shown shows the whole lines in its ends. Linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

LineRange: TypeAlias = tuple[int, int]  # from 1, both ends included
Ends: TypeAlias = tuple[int, int]  # characters of a text that stay at its head and at its tail

_HEADER = re.compile(r", (?:all lines (\d+)|lines (\d+)-(\d+) of \d+)(?: \([^()]*\))?:$")
_NUMBERED = re.compile(r"^ {0,9}(?:L(\d{1,9}): |(\d{1,9})(?:→|\t| ?\| ))", re.M)
_NOTICE = re.compile(
    r"^(?:[\[(<📄]|IMPORTANT|Status|Showing|File\b|---)[^\n]{0,300}?"
    r"\b(\d[\d,]{0,11}) ?(?:-|–|to) ?(\d[\d,]{0,11}) ?(?:of|/) ?\d",
    re.M | re.I,
)
_CUT = re.compile(
    r"\b(?:truncated|clipped|omitted|not shown|left out|elided|more lines|recall [0-9a-f]{8})", re.I
)
_OPENING = ("[", "(", "<", "...", "…")  # before such a word, on the same line
_BEGINNING = 5_000  # characters of a text in which its first lines are looked for
_NOTICES = 800  # characters at either end of a text in which notices are looked for


def find_shown_lines(
    text: str, *, whole: bool, ends: Ends | None = None
) -> tuple[LineRange, ...] | None:
    """The lines of a file that a text shows, or what stays of it; None if that cannot be told.
    `whole`: the call asked for the whole file."""
    limits = _read_header(text)
    if limits is not None and ends is None and f"\n{limits[1]}→" in text:
        return (limits,)
    numbering = "sound" if limits is not None else _judge_numbers(text)
    if numbering == "sound":
        first, last = limits or (0, 1 << 60)
        found = [
            (max(first, a), min(last, b)) for piece in _pieces(text, ends) for a, b in _runs(piece)
        ]
        return join_ranges(r for r in found if r[0] <= r[1])
    return _count_lines(text, whole=whole and not numbering, ends=ends)


def _read_header(text: str) -> LineRange | None:
    """The range in the header that `read_file` writes, if the line under it has the number."""
    end = text.find("\n", 0, _BEGINNING)
    found = _HEADER.search(text, 0, end) if end > 0 else None
    if found is None:
        return None
    every, first, last = found.groups()
    limits = (1, int(every)) if every else (int(first), int(last))
    return limits if text.startswith(f"{limits[0]}→", end + 1) else None


def _judge_numbers(text: str) -> Literal["", "sound", "doubtful"]:
    """Whether one of the first three lines has a number, and if so, whether they number lines: a
    table of data may begin with a number in each line, too, but they do not count on."""
    lines = text[:_BEGINNING].lstrip("\n").split("\n", 3)[:3]
    if not any(_NUMBERED.match(line) for line in lines):
        return ""
    if numbered_lines(text) is not None:
        return "sound"
    last, end = -1, -1
    for found in _NUMBERED.finditer(text):
        number = int(found[1] or found[2])
        if end >= 0 and found.start() == end + 1 and number != last + 1:
            return "doubtful"
        last, end = number, text.find("\n", found.end())
        end = len(text) if end < 0 else end
    return "sound"


def _pieces(text: str, ends: Ends | None) -> Iterator[str]:
    """What is shown of a text, in whole lines."""
    if ends is None or sum(ends) >= len(text):
        yield text
        return
    head, start = ends[0], len(text) - ends[1]
    yield text[:head] if text[head] == "\n" else text[: text.rfind("\n", 0, head) + 1]
    if text[start - 1] != "\n":
        start = text.find("\n", start) + 1 or len(text)
    yield text[start:]


def _runs(text: str) -> Iterator[LineRange]:
    """Runs of numbered lines, each number one more than the one before. Only a notice of a cut may
    stand between two runs: other numbered lines, such as an outline, do not show the file."""
    if (single := numbered_lines(text)) is not None:
        first, lines = single
        yield first, first + len(lines) - 1
        return
    first = last = end = -1
    for found in _NUMBERED.finditer(text):
        number, between = int(found[1] or found[2]), text[max(0, end) : found.start()]
        if first >= 0 and not between.strip("\n") and number == last + 1:
            last = number
        elif first < 0 or (number > last and _is_cut(between)):
            if first >= 0:
                yield first, last
            first = last = number
        else:
            break
        end = text.find("\n", found.end())
        end = len(text) if end < 0 else end
    if first >= 0:
        yield first, last


@lru_cache(maxsize=16)
def numbered_lines(text: str) -> tuple[int, list[str]] | None:
    """The first number and the lines of a text that has numbered lines to its end, as most have."""
    found = _NUMBERED.search(text)
    if found is None:
        return None
    first = int(found[1] or found[2])
    prefix, mark = ("L", ": ") if found[1] else ("", found[0].lstrip().lstrip("0123456789"))
    lines = text[found.start() :].rstrip("\n").split("\n")
    for number, line in enumerate(lines, first):
        if not line.lstrip(" ").startswith(f"{prefix}{number}{mark}"):
            return None
    return first, lines


@lru_cache(maxsize=16)
def hash_lines(text: str, *, whole: bool) -> Mapping[int, int]:
    """By number, a hash of each line that a text shows, so that two results can be compared. Lines
    whose place in the text is not certain are not in it."""
    ranges = find_shown_lines(text, whole=whole) or ()
    lines = text.rstrip("\n").split("\n")
    if _read_header(text) is None and _judge_numbers(text) != "sound":
        is_file = sum(last - first + 1 for first, last in ranges) == len(lines)
        return {n: hash(line) for n, line in enumerate(lines, ranges[0][0])} if is_file else {}
    found: dict[int, int] = {}
    for line in lines:
        if (numbered := _NUMBERED.match(line)) is not None:
            found.setdefault(int(numbered[1] or numbered[2]), hash(line[numbered.end() :]))
    return {
        number: line
        for number, line in found.items()
        if any(first <= number <= last for first, last in ranges)
    }


def _count_lines(text: str, *, whole: bool, ends: Ends | None) -> tuple[LineRange, ...] | None:
    """Of a text without numbers. Lines that are not the file's (a notice, a header) may stand
    anywhere in it, so of the ends so many lines fewer count."""
    total = text.count("\n") + (text[-1:] != "\n")
    notice = _NOTICE.search(text[:_NOTICES]) or _NOTICE.search(text[-_NOTICES:])
    if notice is not None:
        first, last = (int(number.replace(",", "")) for number in notice.groups())
    elif whole and text and not _is_cut(text):
        first, last = 1, total
    else:
        return None
    others = total - (last - first + 1)
    if first < 1 or last < first or others < 0:
        return None
    if ends is None or sum(ends) >= len(text):
        return ((first, last),)
    head, tail = (
        piece.count("\n") + (piece[-1:] not in ("", "\n")) for piece in _pieces(text, ends)
    )
    found = (first, first + head - others - 1), (last - tail + others + 1, last)
    return join_ranges(r for r in found if first <= r[0] <= r[1] <= last)


def _is_cut(text: str) -> bool:
    """Whether a notice in the text says that it was cut."""
    for found in _CUT.finditer(text):
        at = found.start()
        line = text[max(at - 100, text.rfind("\n", 0, at) + 1) : at]
        if any(mark in line for mark in _OPENING):
            return True
    return False


def join_ranges(ranges: Iterable[LineRange]) -> tuple[LineRange, ...]:
    """Sorted, neither overlapping nor adjacent."""
    joined: list[LineRange] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def subtract_ranges(
    ranges: Iterable[LineRange], others: Iterable[LineRange]
) -> tuple[LineRange, ...]:
    """What is in `ranges` and not in `others`."""
    left = list(ranges)
    for first, last in others:
        left = [
            piece
            for a, b in left
            for piece in ((a, min(b, first - 1)), (max(a, last + 1), b))
            if piece[0] <= piece[1]
        ]
    return tuple(left)


class LineSet:
    """Lines, to which ranges are added; a question takes the logarithm of the number of ranges."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int) -> None:
        begin = bisect_left(self._lasts, first - 1)
        end = bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        self._firsts[begin:end], self._lasts[begin:end] = [first], [last]

    def holds(self, first: int, last: int) -> bool:
        at = bisect_right(self._firsts, first) - 1
        return at >= 0 and last <= self._lasts[at]
