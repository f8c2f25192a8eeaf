"""Styled text as lines of a terminal.

Pure: the same text, width and look give the same lines. `Look.clean` takes out of a text whatever a
terminal would obey or hide, and each leaf of what is shown goes through it; `finish` looks once
more at every line. No style has a link, so what is read is what is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text as RichText
from textual.strip import Strip

from recollect.display.display_text import sanitize
from recollect.display.plain_marks import MARKS, ascii_text
from recollect.terminal.palette import Palette, StyleName

Span: TypeAlias = tuple[str, Style]
Line: TypeAlias = list[Segment]

GUTTER = 2  # columns before every line, for marks
TAB = 4
PLAIN = Style()


class Look(NamedTuple):
    """What rendering depends on besides the text."""

    width: int
    dark: bool = True
    ascii: bool = False  # no symbols beyond ASCII
    palette: Palette = Palette()
    base: Style = PLAIN  # under everything

    @property
    def room(self) -> int:
        """Columns beside the gutter."""
        return max(4, self.width - GUTTER)

    def clean(self, text: str) -> str:
        """The text as this terminal may get it; line ends and tabs stay."""
        safe = sanitize(text)
        return ascii_text(safe) if self.ascii else safe

    def mark(self, symbol: str) -> str:
        """One of our own symbols, in one column."""
        return MARKS.get(symbol, "*")[0] if self.ascii else symbol


@lru_cache(1)
def _console() -> Console:
    return Console(
        width=80, color_system="truecolor", legacy_windows=False, force_terminal=True,
        emoji=False, highlight=False, markup=False, _environ={},
    )  # fmt: skip


def wrap_spans(spans: Iterable[Span], width: int) -> list[Line]:
    """Clean texts, wrapped between words to this width; a long word is folded."""
    found = [(text, style) for text, style in spans if text]
    whole = "".join(text for text, _ in found)
    if len(whole) * 2 <= width and "\n" not in whole and "\t" not in whole:
        return [[Segment(text, style) for text, style in found]]
    text = RichText.assemble(*found, tab_size=TAB, end="")
    lines = text.wrap(_console(), max(2, width), overflow="fold", tab_size=TAB)
    return [[each for each in line.render(_console()) if each.text] for line in lines]


def fold_text(text: str, width: int, style: Style = PLAIN) -> list[Line]:
    """A clean text as it is, each line cut where the width ends: for code and output."""
    found: list[Line] = []
    for line in text.expandtabs(TAB).split("\n"):
        if len(line) <= width and line.isascii():
            pieces = [line]
        elif line.isascii():
            pieces = [line[at : at + width] for at in range(0, len(line), width)]
        else:
            pieces = [line] if cell_len(line) <= width else chop_cells(line, width)
        found += ([Segment(piece, style)] for piece in pieces)
    return found


def fold_line(line: Line, width: int) -> list[Line]:
    """A styled line, cut where the width ends."""
    length = sum(cell_len(each.text) for each in line)
    if length <= width:
        return [line]
    return [list(part) for part in Strip(line).divide([*range(width, length, width), length])]


def line_width(line: Line) -> int:
    return sum(cell_len(segment.text) for segment in line)


def difference_style(line: str) -> StyleName:
    """Of a line of a unified difference."""
    if line.startswith("+") and not line.startswith("+++ "):
        return "added"
    if line.startswith("-") and not line.startswith("--- "):
        return "removed"
    return "dim" if line.startswith(("@@", "+++ ", "--- ", "\\")) else "plain"


def prefix_lines(
    lines: list[Line], first: str, style: Style, other: str | None = None
) -> list[Line]:
    """Lines that are indented as far as `first`, which stands before the first of them."""
    rest = " " * cell_len(first) if other is None else other
    return [[Segment(rest if number else first, style), *line] for number, line in enumerate(lines)]


def fill_lines(lines: Iterable[Line], width: int, style: Style) -> Iterator[Line]:
    """Lines with a background to their whole width."""
    for line in lines:
        styled = [Segment(text, style + own if own else style) for text, own, _ in line]
        missing = width - line_width(line)
        yield [*styled, Segment(" " * missing, style)] if missing > 0 else styled


def finish(lines: Iterable[Line], look: Look) -> list[Strip]:
    """The last look: no control character in any line, and each as wide as the screen. They are
    painted as they are, so that a line that stays costs nothing when others come."""
    found = []
    for line in lines:
        strip = Strip([_safe(segment) for segment in line if segment.text])
        strip = strip.crop_extend(0, look.width, None)
        found.append(strip.apply_style(look.base) if look.base else strip)
    return found


def _safe(segment: Segment) -> Segment:
    text = segment.text
    if text.isprintable() and segment.control is None:
        return segment
    return Segment(sanitize(text.replace("\t", " ").replace("\n", " ")), segment.style)
