"""Finds a text in another when only blanks differ: at the ends of lines, or in the indentation.

The indentation may differ by the same blanks in all lines that are not empty; the new text is then
moved by the same. Breaks are LF here. Linear: the lines are joined without the blanks in question
and searched as one text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

MAX_SEARCHED = 4_000_000  # characters of a text that is searched
MAX_CANDIDATES = 200  # places that are looked at
MAX_PLACED = 11  # of them that are named
_BLANKS = " \t"


class LooseMatch(NamedTuple):
    """A place in a text, what is to stand there, and what was ignored to find it."""

    start: int
    end: int
    new: str
    ignored: str


def find_loosely(text: str, old: str, new: str) -> tuple[LooseMatch, ...] | None:
    """The places where `old` stands but for blanks; None when there is none."""
    if not old.strip() or len(text) > MAX_SEARCHED or len(old) > MAX_SEARCHED:
        return None
    lines = text.split("\n")
    for find in (_without_last_newline, _without_trailing_blanks, _with_other_indentation):
        if found := tuple(find(text, lines, old, new)):
            return found
    return None


def _without_last_newline(text: str, lines: list[str], old: str, new: str) -> Iterator[LooseMatch]:
    """The end of a file that has no newline there, where the text given has one."""
    if lines[-1] and old.endswith("\n") and text.endswith(old[:-1]):
        ignored = "the newline that the file does not have at its end"
        yield LooseMatch(len(text) - len(old) + 1, len(text), new.removesuffix("\n"), ignored)


def _without_trailing_blanks(
    text: str, lines: list[str], old: str, new: str
) -> Iterator[LooseMatch]:
    joined = "\n".join([line.rstrip(_BLANKS) for line in lines])
    wanted = "\n".join([line.rstrip(_BLANKS) for line in old.split("\n")])
    places = _find_all(joined, wanted)
    if old.endswith((" ", "\t")):  # whatever follows in the file, it is not the rest of a word
        places = (
            at for at in places if joined[at + len(wanted) : at + len(wanted) + 1] in ("", "\n")
        )
    for at in islice(places, MAX_PLACED):
        start, end = (_offset(lines, joined, n) for n in (at, at + len(wanted)))
        kept = keep_unchanged(text[start:end], new)
        yield LooseMatch(start, end, kept, "blanks at the ends of lines")


def _offset(lines: list[str], joined: str, at: int) -> int:
    """Where a position in the joined lines is in the text that the lines are of."""
    line = joined.count("\n", 0, at)
    return sum(map(len, lines[:line])) + line + at - (joined.rfind("\n", 0, at) + 1)


def _with_other_indentation(
    text: str, lines: list[str], old: str, new: str
) -> Iterator[LooseMatch]:
    wanted = old.split("\n")
    ends_line = len(wanted) > 1 and not wanted[-1]
    wanted = wanted[:-1] if ends_line else wanted
    joined = "\n".join(["", *[line.strip(_BLANKS) for line in lines], ""])
    key = "\n".join(["", *[line.strip(_BLANKS) for line in wanted], ""])
    line, start, counted = 0, 0, 0
    for at in _find_all(joined, key):
        further = joined.count("\n", counted, at)
        start += sum(len(skipped) + 1 for skipped in lines[line : line + further])
        line, counted = line + further, at
        matched = lines[line : line + len(wanted)]
        moved = _move(matched, wanted, new)
        if moved is None:
            continue
        end = start + sum(map(len, matched)) + len(matched) - 1
        has_break = end < len(text)
        if ends_line and has_break:
            end += 1
        elif ends_line:
            moved = moved.removesuffix("\n")
        kept = keep_unchanged(text[start:end], moved)
        yield LooseMatch(start, end, kept, "the indentation")


def _move(matched: list[str], wanted: list[str], new: str) -> str | None:
    """The new text, moved as far as the lines found are from the lines wanted; None when that is
    not the same for all of them."""
    pairs = [
        (_indent(found), _indent(given))
        for found, given in zip(matched, wanted, strict=True)
        if given.strip(_BLANKS)
    ]
    longer, shorter = pairs[0]
    if not longer.endswith(shorter) and not shorter.endswith(longer):
        return None
    new_lines = new.split("\n")
    if len(longer) >= len(shorter):
        added = longer[: len(longer) - len(shorter)]
        if any(found != added + given for found, given in pairs):
            return None
        return "\n".join([added + line if line.strip(_BLANKS) else line for line in new_lines])
    removed = shorter[: len(shorter) - len(longer)]
    filled = [line for line in new_lines if line.strip(_BLANKS)]
    if any(given != removed + found for found, given in pairs) or not all(
        line.startswith(removed) for line in filled
    ):
        return None
    return "\n".join([line.removeprefix(removed) for line in new_lines])


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(_BLANKS))]


def keep_unchanged(matched: str, new: str) -> str:
    """The new text; its first and last lines that only differ in blanks at their ends from those
    that were matched are left as they are."""
    old_lines, new_lines = matched.split("\n"), new.split("\n")
    most = min(len(old_lines), len(new_lines))
    head = 0
    while head < most and old_lines[head].rstrip(_BLANKS) == new_lines[head].rstrip(_BLANKS):
        head += 1
    tail = 0
    while tail < most - head and (
        old_lines[-1 - tail].rstrip(_BLANKS) == new_lines[-1 - tail].rstrip(_BLANKS)
    ):
        tail += 1
    middle = new_lines[head : len(new_lines) - tail]
    return "\n".join([*old_lines[:head], *middle, *old_lines[len(old_lines) - tail :]])


def _find_all(text: str, wanted: str) -> Iterator[int]:
    """Where a text stands, also where two places overlap: then neither is the only one."""
    at = text.find(wanted)
    for _ in range(MAX_CANDIDATES):
        if at < 0:
            return
        yield at
        at = text.find(wanted, at + 1)
