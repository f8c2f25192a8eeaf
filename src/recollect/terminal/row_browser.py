"""A scrolling list of rows, of which only the visible ones are made; with a cursor, or for reading.

The rows are a function of their number, so that a list of 10,000 opens at once. What they say must
be safe to show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message as TextualMessage
from textual.scroll_view import ScrollView
from textual.strip import Strip

# pieces of a row: a text and its style
RowPieces: TypeAlias = Sequence[tuple[str, Style]]
MakeRow: TypeAlias = Callable[[int, int], RowPieces]  # of a row's number, for a width
SELECTED = Style(reverse=True)


class RowStyles(NamedTuple):
    """By what a row or a piece of it is."""

    strong: Style = Style(bold=True)
    dim: Style = Style(dim=True)
    warned: Style = Style(color="yellow")
    added: Style = Style(color="green")
    removed: Style = Style(color="red")
    tool: Style = Style(color="cyan")


ROW_STYLES = RowStyles()


class RowBrowser(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    RowBrowser { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """
    BINDINGS = [
        ("up,k", "move(-1)", "Up"),
        ("down,j", "move(1)", "Down"),
        ("pageup", "move_page(-1)", "Page up"),
        ("pagedown", "move_page(1)", "Page down"),
        ("home,g", "move_to(0)", "First"),
        ("end,G", "move_to(-1)", "Last"),
    ]

    class Moved(TextualMessage):
        """Another row has the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.cursor = 0
        self._count = 0
        self._make: MakeRow = lambda _number, _width: ()

    @property
    def row_width(self) -> int:
        return max(4, self.scrollable_content_region.width)

    def show(self, count: int, make: MakeRow, cursor: int = 0) -> None:
        self._count, self._make = count, make
        self.virtual_size = Size(self.row_width, count)
        self._set_cursor(cursor)
        self.refresh()

    def _set_cursor(self, number: int) -> None:
        self.cursor = max(0, min(number, self._count - 1))
        region = Region(0, self.cursor, 1, 1)
        self.scroll_to_region(region, animate=False, immediate=True, force=True)
        self.refresh()
        self.post_message(self.Moved())

    def render_line(self, y: int) -> Strip:
        number, width = self.scroll_offset.y + y, self.row_width
        if number >= self._count:
            return Strip.blank(width, self.rich_style)
        made, selected = self._make(number, width), number == self.cursor
        pieces = [Segment(text, SELECTED if selected else style) for text, style in made]
        strip = Strip(pieces).crop_extend(0, width, SELECTED if selected else None)
        return strip.apply_style(self.rich_style)

    def on_resize(self, event: Resize) -> None:
        del event
        self.show(self._count, self._make, self.cursor)

    def on_click(self, event: Click) -> None:
        self._set_cursor(self.scroll_offset.y + event.y)

    def action_move(self, by: int) -> None:
        self._set_cursor(self.cursor + by)

    def action_move_page(self, by: int) -> None:
        self._set_cursor(self.cursor + by * max(1, self.size.height - 1))

    def action_move_to(self, number: int) -> None:
        self._set_cursor(self._count - 1 if number < 0 else number)


class WrappedLines(RowBrowser):
    """Lines to read: they are wrapped, and the keys scroll."""

    # a scrollbar that came only with many lines would cover the end of lines that were wrapped
    DEFAULT_CSS = "WrappedLines { overflow-y: scroll; }"

    def __init__(self, lines: RowPieces) -> None:
        super().__init__()
        self._lines = lines

    def on_resize(self, event: Resize) -> None:
        del event
        rows = wrap_lines(self._lines, self.row_width)
        self.show(len(rows), lambda number, _: [rows[number]], -1)

    def _set_cursor(self, number: int) -> None:
        del number
        self.cursor = -1

    def action_move(self, by: int) -> None:
        self.scroll_relative(y=by, animate=False, immediate=True)

    def action_move_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 1))

    def action_move_to(self, number: int) -> None:
        self.scroll_to(y=self._count if number else 0, animate=False, immediate=True)


def wrap_lines(lines: RowPieces, width: int) -> list[tuple[str, Style]]:
    rows: list[tuple[str, Style]] = []
    for line, style in lines:
        text = line.expandtabs(4)
        if cell_len(text) <= width:
            rows.append((text, style))
        else:
            rows += ((piece, style) for piece in chop_cells(text, width))
    return rows
