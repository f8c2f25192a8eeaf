"""A pager for a long text: scrolling, search with `/`, `n` and `N`, copying with `c`.

The text is sanitized once, and lines are cut out of it as they come into sight, so one of ten
megabytes opens and scrolls like a short one. Lines are wrapped between words; very long ones, and
long words, are folded.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize
from textual.geometry import Size
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input

from recollect.display.display_text import display_width, one_line, sanitize, truncate
from recollect.terminal.screen_lines import KeyLine, TitleLine
from recollect.terminal.wrapped_lines import READING_KEYS

SHORT = 50_000  # characters: longer texts are prepared beside the event loop
MEASURED = 4_000  # characters: longer lines are folded by their number, not wrapped
_FOUND = Style(reverse=True)
_ONE_ROW = range(1)
# of these blocks some characters are two columns wide; of those without them none is
_PERHAPS_WIDE = re.compile(
    "[\u1100-\u115f\u231a-\u23ff\u25fd-\u27bf\u2b00-\u2bff\u2e80-\U0010ffff]"
)


class PagedText:
    """A text in rows of a given width."""

    def __init__(self, text: str, width: int) -> None:
        self.width = max(2, width)
        self.lines = text.expandtabs(4).split("\n")
        self._starts = [self._row_starts(line) for line in self.lines]
        self._ends = list(accumulate(map(len, self._starts)))

    def _row_starts(self, line: str) -> Sequence[int]:
        """Where each row of a line begins."""
        width = self.width
        if 2 * len(line) <= width:
            return _ONE_ROW
        is_narrow = line.isascii() or not _PERHAPS_WIDE.search(line)
        if len(line) > MEASURED:  # some characters may be two columns wide
            return range(0, len(line), width if is_narrow else width // 2)
        if is_narrow:
            return _wrap_narrow(line, width) if len(line) > width else _ONE_ROW
        return _wrap_wide(line, width)

    @property
    def height(self) -> int:
        return self._ends[-1]

    def row(self, number: int) -> str:
        line = bisect_right(self._ends, number)
        if line >= len(self.lines):
            return ""
        starts = self._starts[line]
        at = number - (self._ends[line - 1] if line else 0)
        end = starts[at + 1] if at + 1 < len(starts) else None
        return self.lines[line][starts[at] : end]

    def find(self, words: str, start: int, *, back: bool = False) -> int | None:
        """The next row from here on whose line has these words, around the end."""
        wanted = words.lower()
        if not wanted:
            return None
        first = bisect_right(self._ends, max(0, start))
        count = len(self.lines)
        for offset in range(count + 1):
            number = (first - offset if back else first + offset) % count
            places = self._rows_with(number, wanted)
            if offset == 0:
                places = [one for one in places if (one <= start if back else one >= start)]
            if places:
                return places[-1] if back else places[0]
        return None

    def _rows_with(self, number: int, wanted: str) -> list[int]:
        """The rows of a line in which these words begin."""
        line, starts = self.lines[number].lower(), self._starts[number]
        first, begin, found = self._ends[number] - len(starts), 0, list[int]()
        while (at := line.find(wanted, begin)) >= 0:
            after = bisect_right(starts, at)
            found.append(first + after - 1)
            if after == len(starts):
                break
            begin = starts[after]
        return found


def _wrap_narrow(line: str, width: int) -> tuple[int, ...]:
    starts = [0]
    while len(line) - starts[-1] > width:
        begin = starts[-1]
        space = line.rfind(" ", begin + width // 2, begin + width + 1)
        starts.append(space + 1 if space >= 0 else begin + width)
    return tuple(starts)


def _wrap_wide(line: str, width: int) -> tuple[int, ...]:
    starts, used, space = [0], 0, 0
    for at, character in enumerate(line):
        wide = display_width(character)
        if used + wide > width and character != " ":
            begin = space if space > starts[-1] + width // 4 else at
            starts.append(begin)
            used = display_width(line[begin:at])
        used += wide
        if character == " ":
            space = at + 1
    return tuple(starts)


class TextView(ScrollView, can_focus=True):
    DEFAULT_CSS = "TextView { height: 1fr; min-height: 1; padding: 0 1; overflow-x: hidden; }"
    BINDINGS: ClassVar[list[BindingType]] = [*READING_KEYS]

    def __init__(self) -> None:
        super().__init__()
        self.text, self.words = "", ""
        self.folded = PagedText("", 80)

    @property
    def columns(self) -> int:
        return self.scrollable_content_region.width or 80

    def show(self, text: str, folded: PagedText | None = None) -> None:
        """A text that was sanitized, and perhaps folded already."""
        self.text = text
        self._fold(folded)

    def _fold(self, folded: PagedText | None = None) -> None:
        self.folded = folded or PagedText(self.text, self.columns)
        self.virtual_size = Size(1, self.folded.height)
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        del event
        self._fold()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = self.folded.row(self.scroll_offset.y + y)
        strip = Strip(_marked(row, self.words))
        return strip.crop_extend(0, max(0, width), Style()).apply_style(self.rich_style)

    def seek(self, words: str, *, back: bool = False, again: bool = False) -> bool:
        """Scroll to the next place with these words; whether there is one."""
        self.words = words
        start = self.scroll_offset.y + (0 if not again else -1 if back else 1)
        row = self.folded.find(words, start, back=back)
        self.refresh()
        if row is None:
            return False
        self.scroll_to(y=row, animate=False, immediate=True)
        return True


def _marked(row: str, words: str) -> list[Segment]:
    """The row with these words marked."""
    if not words:
        return [Segment(row)]
    found, at, low = [], 0, row.lower()
    while len(low) == len(row) and (start := low.find(words.lower(), at)) >= 0:
        found += [Segment(row[at:start]), Segment(row[start : start + len(words)], _FOUND)]
        at = start + len(words)
    return [*found, Segment(row[at:])]


class TextScreen(Screen[None]):
    """One text with a title; `keys` are what else can be pressed, for the last line."""

    DEFAULT_CSS = """
    TextScreen #find { height: 1; border: none; display: none; }
    TextScreen #find.open { display: block; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "Close"),
        ("q", "leave", "Close"),
        ("slash", "find", "Search"),
        ("n", "next", "Next"),
        ("N", "previous", "Previous"),
        ("c", "copy", "Copy"),
    ]
    KEYS: tuple[str, ...] = ("/ search", "n N next", "c copy", "Esc close")

    def __init__(self, title: str, text: str = "") -> None:
        super().__init__()
        self.heading, self.text = title, text

    def compose(self) -> ComposeResult:
        yield TitleLine()
        yield TextView()
        yield Input(id="find", placeholder="search")
        yield KeyLine(*self.KEYS)

    def on_mount(self) -> None:
        self.view.focus()
        self.show_text(self.heading, self.text)

    @property
    def view(self) -> TextView:
        return self.query_one(TextView)

    @work(exclusive=True, group="text")
    async def show_text(self, title: str, text: str) -> None:
        """Another text; sanitizing megabytes is not done on the event loop."""
        self.heading, self.text = title, text
        self.query_one(TitleLine).update(truncate(one_line(title), 400))
        if len(text) < SHORT:
            self.view.show(sanitize(text))
        else:
            clean = await asyncio.to_thread(sanitize, text)
            self.view.show(clean, await asyncio.to_thread(PagedText, clean, self.view.columns))

    def say(self, text: str) -> None:
        """A word in the last line."""
        self.query_one(KeyLine).show(one_line(text), *self.KEYS)

    def action_leave(self) -> None:
        if self.query_one("#find", Input).has_class("open"):
            self._close_find()
        else:
            self.dismiss()

    def action_find(self) -> None:
        field = self.query_one("#find", Input)
        field.add_class("open")
        field.focus()

    def _close_find(self) -> None:
        self.query_one("#find", Input).remove_class("open")
        self.view.focus()

    @on(Input.Submitted, "#find")
    def _find(self, event: Input.Submitted) -> None:
        event.stop()
        self._close_find()
        self._seek(event.value)

    def action_next(self) -> None:
        self._seek(self.view.words, again=True)

    def action_previous(self) -> None:
        self._seek(self.view.words, again=True, back=True)

    def _seek(self, words: str, *, again: bool = False, back: bool = False) -> None:
        if words and not self.view.seek(words, again=again, back=back):
            self.say(f"nowhere: {words}")

    @property
    def to_copy(self) -> str:
        return self.text

    def action_copy(self) -> None:
        text = self.to_copy
        self.app.copy_to_clipboard(text)
        self.say(f"copied {len(text):,} characters")
