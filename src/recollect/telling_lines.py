"""The lines that say most: of tasks, of what the agent said, of its changes and failures.

A line says more the more words it has that were not said yet; a name that only code would write
counts more than another word. Lines are taken whole, the ones that say most for their length first.
Their order is for the caller to keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from recollect.code_names import is_identifier

_WORD = re.compile(r"[^\W_]\w{2,}")
_LINE_COST = 30  # characters; without it the shortest lines would always say most


class Line(NamedTuple):
    text: str
    words: frozenset[str]
    weight: float = 1.0
    cost: int = 1  # characters that showing it takes beside its own
    plain: float = 0.4  # what a word counts beside a name that only code would write

    @staticmethod
    def of(text: str, weight: float = 1.0, cost: int = 1, plain: float = 0.4) -> Line:
        return Line(text, frozenset(_WORD.findall(text)), weight, cost, plain)


def choose_lines(lines: Sequence[Line], room: int, said: str = "") -> set[int]:
    """The positions of the lines that say most within the room, given what was said already."""
    known, chosen, left = set(_WORD.findall(said)), set[int](), room

    def worth(n: int) -> float:
        line, new = lines[n], lines[n].words - known
        names = sum(map(is_identifier, new))  # counted: adding up fractions depends on their order
        said_anew = names + line.plain * (len(new) - names)
        return -line.weight * said_anew / (len(line.text) + _LINE_COST)

    heap = [(worth(n), n) for n in range(len(lines))]
    heapify(heap)
    while heap:
        before, n = heappop(heap)
        size = len(lines[n].text) + lines[n].cost
        now = worth(n)
        if now >= 0 or size > left:
            continue
        if now > before and heap and now > heap[0][0]:
            heappush(heap, (now, n))  # a line taken since says some of it
            continue
        chosen.add(n)
        known |= lines[n].words
        left -= size
    for n in range(len(lines) - 1, -1, -1):  # the newest say again what was said
        size = len(lines[n].text) + lines[n].cost
        if n not in chosen and size <= left:
            chosen.add(n)
            left -= size
    return chosen


def is_prose(text: str) -> bool:
    """Whether a text is written for people, like a task's description, and not a log or listing."""
    lines = [line.strip() for line in text[:20_000].split("\n") if line.strip()]
    if any(line.startswith("@@ ") for line in lines):
        return False  # a patch is full of dashes
    marked = sum(
        line.startswith(("#", "- ", "* ", "1.", "2.", "3.")) or "`" in line for line in lines
    )
    return len(lines) > 3 and marked >= 0.25 * len(lines)


def squeeze(lines: Iterable[str], most: int) -> list[str]:
    """Each on one line of at most `most` characters, without empty ones."""
    found = (" ".join(line[: 4 * most].split()) for line in lines)
    return [line if len(line) <= most else line[: most - 1] + "…" for line in found if line]
