"""Lines to read, in the styles of what they are; the keys scroll. They must be safe to show.

Words are wrapped; what must be read to the letter, such as a command or a difference, is cut where
the width ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual.binding import BindingType
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from recollect.terminal.palette import Palette, read_palette
from recollect.terminal.row_list import Row, row_strip
from recollect.terminal.styled_lines import TAB, Line, difference_style, fold_line, wrap_spans

READING_KEYS: tuple[BindingType, ...] = (
    ("up,k", "scroll_up", "Up"),
    ("down,j", "scroll_down", "Down"),
    ("pageup", "page_up", "Page up"),
    ("pagedown,space", "page_down", "Page down"),
    ("home", "scroll_home", "Beginning"),
    ("end", "scroll_end", "End"),
)


class ReadLine(NamedTuple):
    row: Row
    exact: bool = False  # cut where the width ends, not between words

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.row)


def difference_lines(diff: str) -> list[ReadLine]:
    """A unified difference, as every screen shows it."""
    return [ReadLine([(line, difference_style(line))], exact=True) for line in diff.split("\n")]


class WrappedLines(ScrollView, can_focus=True):
    # a scrollbar that came only with many lines would cover the end of lines that were wrapped
    DEFAULT_CSS = """
    WrappedLines { height: 1fr; padding: 0 1; overflow-x: hidden; overflow-y: scroll; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*READING_KEYS]

    def __init__(self, lines: Iterable[ReadLine] = (), *, id: str | None = None) -> None:  # noqa: A002 - Textual's word
        super().__init__(id=id)
        self.lines = tuple(lines)
        self._rows: list[Strip] | None = None  # wrapped for a width, in the colours of a theme
        self._width = 0

    def show(self, lines: Iterable[ReadLine]) -> None:
        self.lines, self._rows = tuple(lines), None
        self.virtual_size = Size(1, len(self.rows(self.scrollable_content_region.width)))
        self.refresh(layout=True)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._rows = None
        self.refresh()

    def rows(self, width: int) -> list[Strip]:
        if self._rows is None or self._width != width:
            palette, self._width = read_palette(self), width
            self._rows = [
                row_strip(row, width, self.rich_style)
                for line in self.lines
                for row in _wrap(line, max(2, width), palette)
            ]
        return self._rows

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        del container, viewport
        return len(self.rows(width - self.styles.scrollbar_size_vertical))

    def on_resize(self, event: Resize) -> None:
        del event
        self.virtual_size = Size(1, len(self.rows(self.scrollable_content_region.width)))

    def render_line(self, y: int) -> Strip:
        width, number = self.scrollable_content_region.width, self.scroll_offset.y + y
        rows = self.rows(width)
        return rows[number] if number < len(rows) else Strip.blank(width, self.rich_style)


def _wrap(line: ReadLine, width: int, palette: Palette) -> list[Line]:
    spans = [(text.expandtabs(TAB), getattr(palette, name)) for text, name in line.row]
    if line.exact:
        return fold_line([Segment(*span) for span in spans], width)
    return wrap_spans(spans, width) or [[]]
