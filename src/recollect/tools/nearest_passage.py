"""The lines of a text that are most like a wanted passage, for a model that has to correct itself.

Lines that both have, and that are rare, say where the passage would begin; if there are none, the
line that shares most letters with the longest wanted line says so. Linear and bounded.
"""

from __future__ import annotations

from collections import Counter

MAX_NEAR = 2_000_000  # characters of a text that are looked at
MAX_WANTED = 400  # lines
MAX_SHOWN = 24
MAX_LINE = 300  # characters
AROUND = 2
_RARE = 20  # a line that occurs more often says little about where a passage is
_LEAST_ALIKE = 0.3  # less in common than this does not count


def nearest_passage(text: str, wanted: str) -> str:
    """The numbered lines that are most like the wanted ones; empty when none are."""
    lines = text[:MAX_NEAR].split("\n")
    keys = [line.strip() for line in wanted[:MAX_NEAR].split("\n")[:MAX_WANTED]]
    first = _align(lines, keys)
    length = len(keys)
    if first is None:
        longest = max(keys, key=len, default="")
        at = _most_alike(lines, longest)
        if at is None:
            return ""
        first = max(0, at - keys.index(longest))
    start, end = max(0, first - AROUND), min(len(lines), first + length + AROUND)
    shown = [f"{n + 1}→{lines[n][:MAX_LINE]}" for n in range(start, min(end, start + MAX_SHOWN))]
    return "\n".join(shown)


def _align(lines: list[str], keys: list[str]) -> int | None:
    """The line where the passage would begin by most of its lines, weighed by how much they say."""
    wanted = {key for key in keys if key}
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        if (key := line.strip()) in wanted and len(places := found.setdefault(key, [])) <= _RARE:
            places.append(number)
    votes = Counter[int]()
    for number, key in enumerate(keys):
        places = found.get(key, [])
        if len(places) <= _RARE:
            for place in places:
                votes[place - number] += min(len(key), 40)
    best = max(votes.items(), key=lambda vote: (vote[1], -vote[0]), default=(0, 0))
    return best[0] if best[1] >= 3 else None  # a lone brace is no evidence


def _most_alike(lines: list[str], wanted: str) -> int | None:
    shape = _trigrams(wanted)
    if not shape:
        return None
    best, at = _LEAST_ALIKE, None
    seen: set[str] = set()
    for number, line in enumerate(lines):
        if line in seen:
            continue
        seen.add(line)
        other = _trigrams(line)
        alike = 2 * len(shape & other) / (len(shape) + len(other))
        if alike > best:
            best, at = alike, number
    return at


def _trigrams(line: str) -> frozenset[str]:
    """Three letters at a time, without spaces, so that only the layout may differ."""
    plain = "".join(line[:600].split())[:MAX_LINE]
    return frozenset(plain[n : n + 3] for n in range(max(len(plain) - 2, min(len(plain), 1))))
