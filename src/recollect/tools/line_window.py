"""Some lines of a text of any length, which comes in pieces: memory holds only what is shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

MAX_LINES = 2_000
MAX_LINE = 2_000  # characters
MAX_CHARACTERS = 4_000_000  # of all files of a call
TRUNCATED = "... [truncated]"
_PIECE = 65_536  # characters that are skipped at once


class SelectedLines(NamedTuple):
    """Some lines of a text; `last` is 0 when there are none."""

    shown: tuple[str, ...]
    first: int
    last: int
    total: int
    ends_with_newline: bool


def select_lines(
    pieces: Iterable[str], first: int, last: int | None, left: int = MAX_CHARACTERS
) -> SelectedLines:
    """The numbered lines from first to last, as many as may be shown. Lines end with LF."""
    end = first + MAX_LINES - 1
    end = end if last is None else min(end, last)
    shown: list[str] = []
    line, begun, size = 1, "", 0  # the line that goes on in the next piece, and its length
    for piece in _cut(pieces):
        newlines = piece.count("\n")
        if line + newlines < first or line > end or left < 0:
            size = size + len(piece) if not newlines else len(piece) - piece.rfind("\n") - 1
            line += newlines
            continue
        *whole, rest = piece.split("\n")
        for text in whole:
            if first <= line <= end:
                left = _show(shown, line, begun + text, left)
            line, begun, size = line + 1, "", 0
        if line >= first:
            begun = (begun + rest)[: MAX_LINE + 2]
        size += len(rest)
    if size and first <= line <= end:
        _show(shown, line, begun, left)
    total = line if size else line - 1
    numbered = first + len(shown) - 1 if shown else 0
    return SelectedLines(tuple(shown), first, numbered, total, ends_with_newline=not size)


def _cut(pieces: Iterable[str]) -> Iterator[str]:
    for piece in pieces:
        yield from (piece[at : at + _PIECE] for at in range(0, len(piece), _PIECE))


def _show(shown: list[str], number: int, line: str, left: int) -> int:
    """Add a line if there is room for it, the first in any case; the room that is left."""
    if left < 0:
        return left
    body = line.removesuffix("\r")
    made = f"{number}→{body if len(body) <= MAX_LINE else body[:MAX_LINE] + TRUNCATED}"
    left -= len(made) + 1
    if left >= 0 or not shown:
        shown.append(made)
    return left
