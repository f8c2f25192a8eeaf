"""Line breaks: models read and write `\\n`, files keep what they have.

A file's breaks are CRLF and LF, each where it stands; CR only in a file that has no LF at all. So
line numbers are those of editors and compilers. `normalize` gives the text as a model reads it,
and `raw_offsets` leads from there back to the file's own text. All of it is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_CRLF = re.compile("\r\n")


def uses_cr(text: str) -> bool:
    """Whether CR alone ends the lines of a file."""
    return "\r" in text and "\n" not in text


def normalize(text: str, *, cr: bool = False) -> str:
    """The text with LF for every break; `cr`: a CR alone is one too."""
    plain = text.replace("\r\n", "\n")
    return plain.replace("\r", "\n") if cr else plain


def raw_offsets(text: str, positions: Sequence[int]) -> Iterator[int]:
    """Positions in the normalized text, in order, as positions in the text itself. None falls
    between the two characters of a CRLF."""
    breaks = _CRLF.finditer(text)
    shift = 0
    upcoming = next(breaks, None)
    for position in positions:
        while upcoming is not None and upcoming.start() - shift < position:
            shift += 1
            upcoming = next(breaks, None)
        yield position + shift


def dominant_ending(text: str) -> str:
    """The break that most lines of a text end with; LF when there is none, or no majority."""
    if uses_cr(text):
        return "\r"
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"


def describe_endings(text: str) -> str:
    """How the lines of a text end, in words; empty if all of them end with LF."""
    if uses_cr(text):
        return "lines end with CR"
    crlf = text.count("\r\n")
    if not crlf:
        return ""
    is_mixed = crlf < text.count("\n")
    return "lines end with CRLF and LF, mixed" if is_mixed else "lines end with CRLF"


class EndingFinder:
    """The breaks of places in a text, which come in order; so a question costs little."""

    def __init__(self, text: str) -> None:
        self._text, self._is_cr = text, uses_cr(text)
        self._after = text.find("\n")  # the next LF after the last place; -1: there is none
        self._dominant = ""

    def find(self, start: int, end: int) -> str:
        """The break of the lines from start to end: the one that most of them have, otherwise that
        of the line that the end is in, otherwise that of most lines of the text."""
        if self._is_cr:
            return "\r"
        within = self._text[start:end]
        if "\n" in within:
            crlf = within.count("\r\n")
            lf = within.count("\n") - crlf
            first = "\r\n" if -1 < within.find("\r\n") < within.find("\n") else "\n"
            return first if crlf == lf else "\r\n" if crlf > lf else "\n"
        if 0 <= self._after < end:
            self._after = self._text.find("\n", end)
        if self._after < 0:
            self._dominant = self._dominant or dominant_ending(self._text)
            return self._dominant
        return "\r\n" if self._after > end and self._text[self._after - 1] == "\r" else "\n"
