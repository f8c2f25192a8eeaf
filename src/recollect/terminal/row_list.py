"""A list of rows with a cursor, of any length: only what is visible is drawn.

Whoever shows it gives the number of rows and a function that makes one for a width. A row is pieces
of text, safe to show, each with the name of its style.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeAlias

from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message as TextualMessage
from textual.scroll_view import ScrollView
from textual.strip import Strip

from recollect.terminal.palette import Palette, StyleName, read_palette
from recollect.terminal.styled_lines import Line

Row: TypeAlias = Sequence[tuple[str, StyleName]]


def no_row(_row: int, _width: int) -> Row:
    return ()


def style_row(row: Row, palette: Palette) -> Line:
    return [Segment(text, getattr(palette, name)) for text, name in row]


def row_strip(line: Line, width: int, base: Style) -> Strip:
    """A line as wide as this, the background of its last piece to its end."""
    strip = Strip(line)
    if strip.cell_length > width:
        strip = Strip([*strip.crop(0, width - 1), Segment("…", line[-1].style)])
    last = line[-1].style if line else None
    under = Style(bgcolor=last.bgcolor) if last is not None else Style()
    return strip.extend_cell_length(width, under).apply_style(base)


class RowList(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    RowList {
        height: 1fr; min-height: 1; padding: 0 1; overflow-x: hidden; overflow-y: auto;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "move(-1)", "Up"),
        ("down,j", "move(1)", "Down"),
        ("pageup", "page(-1)", "Page up"),
        ("pagedown", "page(1)", "Page down"),
        ("home,g", "go(0)", "First"),
        ("end,G", "go(-1)", "Last"),
        ("enter", "choose", "Open"),
    ]

    class Moved(TextualMessage):
        """The cursor is on another row."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    class Chosen(TextualMessage):
        """Enter, or a click on the row with the cursor."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def __init__(self, make: Callable[[int, int], Row] = no_row) -> None:
        super().__init__()
        self.make, self.count, self.cursor = make, 0, 0
        self._palette: Palette | None = None  # until the theme changes

    def show(self, count: int, cursor: int | None = None) -> None:
        """Other rows; the cursor stays where it is, or goes where it is told."""
        self.count = count
        self.virtual_size = Size(1, count)
        self.move_to(self.cursor if cursor is None else cursor)
        self.refresh()

    def move_to(self, row: int) -> None:
        self.cursor = max(0, min(row, self.count - 1))
        # by force: more rows than fit may have come just now, and the list cannot scroll yet
        region = Region(0, self.cursor, 1, 1)
        self.scroll_to_region(region, animate=False, immediate=True, x_axis=False, force=True)
        self.refresh()
        self.post_message(self.Moved(self.cursor))

    # --- rendering -------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._palette = None

    def render_line(self, y: int) -> Strip:
        width, row = self.scrollable_content_region.width, self.scroll_offset.y + y
        if row >= self.count or width <= 0:
            return Strip.blank(max(0, width), self.rich_style)
        if self._palette is None:
            self._palette = read_palette(self)
        made = self.make(row, width)
        if row != self.cursor:
            return row_strip(style_row(made, self._palette), width, self.rich_style)
        # one colour: others would be hard to read on the cursor's
        text = "".join(text for text, _ in made)
        return row_strip([Segment(text)], width, self._palette.cursor)

    # --- keys ------------------------------------------------------------------------------------

    def action_move(self, rows: int) -> None:
        self.move_to(self.cursor + rows)

    def action_page(self, pages: int) -> None:
        self.move_to(self.cursor + pages * max(1, self.size.height - 1))

    def action_go(self, row: int) -> None:
        self.move_to(row if row >= 0 else self.count + row)

    def action_choose(self) -> None:
        if self.count:
            self.post_message(self.Chosen(self.cursor))

    def on_click(self, event: Click) -> None:
        row = self.scroll_offset.y + event.y
        if row >= self.count:
            return
        if row == self.cursor:
            self.action_choose()
        else:
            self.move_to(row)

    def on_resize(self, event: Resize) -> None:
        del event
        self.virtual_size = Size(1, self.count)
        self.move_to(self.cursor)
