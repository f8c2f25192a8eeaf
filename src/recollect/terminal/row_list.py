"""A list of rows with a cursor, of any length: only what is visible is drawn.

Whoever shows it gives the number of rows and a function that draws one as a line of text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text as RichText
from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message as TextualMessage
from textual.scroll_view import ScrollView
from textual.strip import Strip

_CURSOR = Style(reverse=True)


def no_line(_row: int, _width: int) -> RichText:
    return RichText()


class RowList(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    RowList {
        height: 1fr; min-height: 1; padding: 0 1; overflow-x: hidden; overflow-y: auto;
        scrollbar-size-vertical: 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "move(-1)", "Up"),
        ("down", "move(1)", "Down"),
        ("pageup", "page(-1)", "Page up"),
        ("pagedown", "page(1)", "Page down"),
        ("home", "go(0)", "First"),
        ("end", "go(-1)", "Last"),
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

    def __init__(self, draw: Callable[[int, int], RichText] = no_line) -> None:
        super().__init__()
        self.draw, self.count, self.cursor = draw, 0, 0

    def show(self, count: int, cursor: int | None = None) -> None:
        """Other rows; the cursor stays where it is, or goes where it is told."""
        self.count = count
        self.virtual_size = Size(1, count)
        self.move_to(self.cursor if cursor is None else cursor)
        self.refresh()

    def move_to(self, row: int) -> None:
        self.cursor = max(0, min(row, self.count - 1))
        self.scroll_to_region(
            Region(0, self.cursor, 1, 1), animate=False, immediate=True, x_axis=False
        )
        self.refresh()
        self.post_message(self.Moved(self.cursor))

    def render_line(self, y: int) -> Strip:
        width, row = self.scrollable_content_region.width, self.scroll_offset.y + y
        if row >= self.count or width <= 0:
            return Strip.blank(max(0, width), self.rich_style)
        text = self.draw(row, width)
        if text.cell_len > width:
            text.truncate(width, overflow="ellipsis")
        if row == self.cursor:  # one colour: reversed, others would be hard to read
            text = RichText(text.plain, no_wrap=True)
        drawn = text.render(self.app.console)
        segments = [Segment(one.text, one.style) for one in drawn if one.text != "\n"]
        strip = Strip(segments).crop_extend(0, width, Style()).apply_style(self.rich_style)
        return strip.apply_style(_CURSOR) if row == self.cursor else strip

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
