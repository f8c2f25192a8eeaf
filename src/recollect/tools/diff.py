"""The difference between two texts.

A model reads it, so it is bounded; and it is fast whatever the texts are: equal beginnings and ends
are set aside first, and only a small middle is compared line by line.
"""

from __future__ import annotations

import difflib
import re

MAX_COMPARED = 400  # lines on each side that difflib, which is quadratic, is given
MAX_LINES = 1_000_000  # of a text; a list of more takes too much memory
MAX_DIFF_LINES = 400
MAX_DIFF_LINE = 500  # characters
CONTEXT = 3


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
