"""The difference between two texts, and the lines of a text that are most like a wanted one.

A model reads both, so both are bounded; and both are fast whatever the texts are: equal beginnings
and ends are set aside first, and only a small middle is compared line by line.
"""

from __future__ import annotations

import difflib
import re

MAX_COMPARED = 400  # lines on each side that difflib, which is quadratic, is given
MAX_LINES = 1_000_000  # of a text; a list of more takes too much memory
MAX_DIFF_LINES = 400
MAX_DIFF_LINE = 500  # characters
CONTEXT = 3
MAX_NEAR = 50_000  # lines among which a text that was not found is looked for


def unified_diff(before: str, after: str, path: str) -> str:
    """The change as a unified diff; empty when there is none."""
    if before == after:
        return ""
    counts = before.count("\n") + 1, after.count("\n") + 1
    if max(counts) > MAX_LINES:
        return f"(too long to compare: {counts[0]:,} lines became {counts[1]:,})"
    old, new = before.split("\n"), after.split("\n")
    start = _count_equal(old, new)
    end = _count_equal(old[start:][::-1], new[start:][::-1])
    above = max(0, start - CONTEXT)
    below = max(0, end - CONTEXT)
    old_part, new_part = old[above : len(old) - below], new[above : len(new) - below]
    if max(len(old_part), len(new_part)) <= MAX_COMPARED:
        hunks = list(difflib.unified_diff(old_part, new_part, n=CONTEXT, lineterm=""))[2:]
        lines = [_shift_hunk(line, above) if line.startswith("@@ ") else line for line in hunks]
    else:
        lines = _replacement_hunk(old, new, start, end)
    return "\n".join([f"--- {path}", f"+++ {path}", *_limit_lines(lines)])


def _count_equal(old: list[str], new: list[str]) -> int:
    """How many lines are the same at the beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(old), len(new)))


def _shift_hunk(line: str, by: int) -> str:
    """The head of a hunk, counted from the start of the whole text."""
    return re.sub(r"(?<=[-+])\d+", lambda start: str(int(start[0]) + by), line)


def _replacement_hunk(old: list[str], new: list[str], start: int, end: int) -> list[str]:
    """One hunk that removes all of the old middle and adds all of the new one."""
    gone, come = old[start : len(old) - end], new[start : len(new) - end]
    half = MAX_DIFF_LINES // 2
    lines = [f"@@ -{start + 1},{len(gone)} +{start + 1},{len(come)} @@"]
    for mark, some in (("-", gone), ("+", come)):
        lines += [mark + line for line in some[:half]]
        if len(some) > half:
            lines.append(f"[{len(some) - half:,} more lines with {mark} are not shown]")
    return lines


def _limit_lines(lines: list[str]) -> list[str]:
    shown = [
        line if len(line) <= MAX_DIFF_LINE else line[:MAX_DIFF_LINE] + "... [truncated]"
        for line in lines[: MAX_DIFF_LINES + 3]
    ]
    if len(lines) > len(shown):
        shown.append(f"[{len(lines) - len(shown):,} more lines of the difference are not shown]")
    return shown


def nearest_lines(text: str, wanted: str, around: int = 2) -> str:
    """The numbered lines of a text around the one that is most like the longest wanted line; empty
    when none is."""
    lines = text.split("\n", MAX_NEAR)[:MAX_NEAR]
    longest = max(wanted.split("\n", 20)[:20], key=lambda line: len(line.strip()), default="")
    shape = _trigrams(longest)
    if not shape:
        return ""
    others = map(_trigrams, lines)
    scores = [2 * len(shape & other) / (len(shape) + len(other)) for other in others]
    best = scores.index(max(scores))
    if scores[best] <= 0.3:  # less in common than this does not count
        return ""
    first, last = max(0, best - around), min(len(lines), best + around + 1)
    return "\n".join(f"{n + 1}→{lines[n][:300]}" for n in range(first, last))


def _trigrams(line: str) -> frozenset[str]:
    """Three letters at a time, without spaces, so that only the layout may differ."""
    plain = "".join(line[:600].split())[:300]
    return frozenset(plain[n : n + 3] for n in range(max(len(plain) - 2, min(len(plain), 1))))
