"""The conversation as a scrolling widget that renders only what is visible.

What is in sight is decided by `TranscriptLayout`; here it is painted, at most thirty times a second
however fast a reply arrives, and never when nothing changed. While the end is in sight it stays in
sight; for a user who has scrolled up nothing moves, and a line says that there is more below.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import zip_longest
from time import monotonic
from typing import Any, ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message as TextualMessage
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from recollect.terminal.block import Block
from recollect.terminal.palette import read_palette
from recollect.terminal.styled_lines import GUTTER, Look
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_copying import block_text, highlight, selected_text
from recollect.terminal.transcript_layout import TranscriptLayout

PAINT_SECONDS = 1 / 30  # between two paints of what arrives
NEW_BELOW = " ↓ new below "
_NEAR = 3  # screenfuls that are measured on the way; further away places are estimated


class TranscriptView(ScrollView, can_focus=True):
    DEFAULT_CSS = "TranscriptView { height: 1fr; overflow-x: hidden; overflow-y: scroll; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "choose(-1)", "Block above", show=False),
        Binding("down", "choose(1)", "Block below", show=False),
        Binding("enter", "toggle_block", "Unfold"),
        Binding("c", "copy", "Copy"),
    ]

    class TopReached(TextualMessage):
        """The beginning of what is loaded is in sight."""

    class Typed(TextualMessage):
        """The user typed here what belongs into the prompt."""

        def __init__(self, character: str) -> None:
            super().__init__()
            self.character = character

    def __init__(self, transcript: BlockList, *, ascii_only: bool | None = None) -> None:
        super().__init__()
        self.transcript = transcript
        self.shown = TranscriptLayout(transcript)
        self.new_below = False
        self.paints = 0
        self._ascii = _needs_ascii() if ascii_only is None else ascii_only
        self._look: Look | None = None
        self._chosen: int | None = None  # number of the block with the mark
        self._pending = self._adjusting = self._told_top = False
        self._painted = 0.0
        self._pressed = Offset(-1, -1)
        self._lines: list[Strip] = []  # as they were painted last
        transcript.listener = self

    # --- what changed ----------------------------------------------------------------------------

    def blocks_replaced(self, start: int) -> None:
        if not self.transcript.blocks:
            self._chosen = None  # another session
        self.shown.replaced(start)
        self._note_below(start)

    def blocks_prepended(self, count: int) -> None:
        self.shown.prepended(count)
        self._told_top = False
        self._schedule()

    def block_changed(self, position: int) -> None:
        self.shown.changed(position)
        self._schedule()

    def text_grew(self) -> None:
        self._note_below(len(self.transcript.blocks) - 1)

    def _note_below(self, position: int) -> None:
        """Say that something arrived, unless it is in sight."""
        last = self.shown.rows[-1].number if self.shown.rows else -1
        if not self.shown.following and self.transcript.first + position >= last:
            self.new_below = True
        self._schedule()

    def _schedule(self) -> None:
        """Paint soon, once for all that changes until then."""
        if self._pending or not self.is_running or not self.size:
            return
        self._pending = True
        wait = self._painted + PAINT_SECONDS - monotonic()
        if wait <= 0:
            self.call_later(self._paint)
        else:
            self.set_timer(wait, self._paint)

    def _paint(self) -> None:
        self._pending = False
        self._painted = monotonic()
        self._settle()

    # --- painting --------------------------------------------------------------------------------

    @property
    def look(self) -> Look:
        width = max(10, self.scrollable_content_region.width)
        if self._look is None or self._look.width != width:
            self._look = Look(
                width,
                dark=self.app.current_theme.dark,
                ascii=self._ascii,
                palette=read_palette(self),
                base=self.rich_style,
            )
        return self._look

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._look = None
        self._schedule()

    def _settle(self) -> None:
        """Decide what is in sight, and let it be painted."""
        height = self.scrollable_content_region.height
        if height <= 0:
            return
        before = self.shown.top, self.shown.place
        self.shown.use(self.look)
        self.shown.settle(height)
        if self.shown.following:
            self.new_below = False
        self._adjusting = True
        size = Size(self.look.width, self.shown.total)
        if size != self.virtual_size:
            # not by assignment: that would lay out the whole screen again at each paint
            self.set_reactive(TranscriptView.virtual_size, size)
            self._scroll_update(size)
        self.scroll_y = self.scroll_target_y = self.shown.top
        self._adjusting = False
        if before[1] == self.shown.place and not self.shown.following:
            self._move_selection(self.shown.top - before[0])
        self._paint_rows()
        if self.shown.top:
            self._told_top = False
        elif not self._told_top:
            self._told_top = True
            self.post_message(self.TopReached())

    def _paint_rows(self) -> None:
        """Let those lines be painted that are not what they were."""
        before, self._lines = self._lines, [*self._painted_lines()]
        both = zip_longest(before, self._lines)
        changed = [y for y, (old, new) in enumerate(both) if old is not new and old != new]
        if changed:
            self.paints += 1
            top, width = changed[0], self.size.width
            self.refresh(Region(0, top, width, changed[-1] - top + 1))

    def _painted_lines(self) -> Iterator[Strip]:
        look, selection = self.look, self.text_selection
        height = self.scrollable_content_region.height
        for y, (number, strip) in enumerate(self.shown.rows):
            if number == self._chosen:
                mark = Segment("|" if look.ascii else "▌", look.base + look.palette.chosen)
                strip = Strip([mark, *strip.crop(1)])  # noqa: PLW2901
            if selection is not None:
                chosen = self.screen.get_component_rich_style("screen--selection")
                span = selection.get_span(self.shown.top + y)
                strip = highlight(strip, span, chosen)  # noqa: PLW2901
            if self.new_below and y == height - 1:
                chip = look.clean(NEW_BELOW)[: look.width]
                left = strip.crop(0, look.width - len(chip))
                strip = Strip([*left, Segment(chip, look.palette.below)])  # noqa: PLW2901
            yield strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines as they are, without a style of the widget around them: rendered lines are
        shared between paints, with everything that Textual remembers about them."""
        lines, (x1, x2) = self._lines, crop.column_span
        blank = Strip.blank(self.size.width, self.look.base)
        found = [lines[y] if y < len(lines) else blank for y in crop.line_range]
        background = self.background_colors[1]
        for line_filter in self.get_line_filters():
            found = [strip.apply_filter(line_filter, background) for strip in found]
        if (x1, x2) != (0, self.size.width):
            found = [strip.crop(x1, x2) for strip in found]
        return found

    def render_line(self, y: int) -> Strip:
        """With the places of its characters, for the mouse."""
        if y >= len(self._lines):
            return Strip.blank(self.size.width, self.look.base)
        return self._lines[y].apply_offsets(0, self.shown.top + y)

    # --- scrolling -------------------------------------------------------------------------------

    def _scroll_to(self, x: float | None = None, y: float | None = None, **options: Any) -> bool:
        # a scroll that takes a while would aim at lines that meanwhile are others
        options["animate"] = False
        return super()._scroll_to(x, y, **options)

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        if self._adjusting:
            return
        lines, height = round(new) - self.shown.top, self.scrollable_content_region.height
        if not lines:
            return
        if self.shown.following and new >= self.max_scroll_y:
            pass  # not the user: a view that became higher scrolls back to its end
        elif abs(lines) <= _NEAR * max(1, height):
            self.shown.move(lines)
        elif new >= self.max_scroll_y:
            self.shown.following = True
        else:
            self.shown.go_to(round(new))
        self._settle()

    def on_resize(self, event: events.Resize) -> None:
        del event
        self._look = None
        self._settle()

    # --- keys and mouse --------------------------------------------------------------------------

    @property
    def chosen(self) -> Block | None:
        """The block with the mark."""
        if self._chosen is None:
            return None
        position = self._chosen - self.transcript.first
        blocks = self.transcript.blocks
        return blocks[position] if 0 <= position < len(blocks) else None

    def show_words(self, number: int, words: tuple[str, ...]) -> None:
        """Mark a block, and show where it has these words."""
        self._chosen = number
        if (block := self.chosen) is not None:
            if block.foldable and not self.shown.is_unfolded(block):
                self.shown.toggle(block.key)
            self.shown.show_words(number, words)
            self._settle()

    def on_focus(self) -> None:
        if self.chosen is None:
            rows = self.shown.rows
            self._chosen = rows[-1].number if rows else None
        self._paint_rows()

    def on_blur(self) -> None:
        self._chosen = None
        self._paint_rows()

    def action_choose(self, step: int) -> None:
        """Mark the next block; scroll through one that is higher than the screen."""
        if self._chosen is None or not self.shown.rows:
            self.on_focus()
            return
        height, rows = self.scrollable_content_region.height, self.shown.rows
        edge = rows[-1 if step > 0 else 0].number
        if edge == self._chosen and rows[0].number == rows[-1].number:
            self.shown.move(step * max(1, height - 2))
        else:
            first = self.transcript.first
            last = first + len(self.transcript.blocks) - 1
            self._chosen = max(first, min(last, self._chosen + step))
            self.shown.show_block(self._chosen, height)
        self._settle()

    def action_toggle_block(self) -> None:
        block = self.chosen
        if block is not None and block.foldable:
            self.toggle(block.key)

    def action_copy(self) -> None:
        block = self.chosen
        if block is not None:
            growing = self.transcript.growing
            grows = growing is not None and growing.key == block.key
            self.app.copy_to_clipboard(growing.text if grows and growing else block_text(block))
            self.notify("copied", timeout=2)

    def unfold_all(self) -> None:
        """Unfold every call, thought and long prompt, or fold them again."""
        self.shown.unfold(unfolded=not self.shown.unfolded)
        self._settle()

    def follow_end(self) -> None:
        """Show the newest, whatever was looked at."""
        self.shown.following = True
        self._settle()

    def toggle(self, key: str) -> None:
        """Fold or unfold one block."""
        self.shown.toggle(key)
        self._settle()

    def on_key(self, event: events.Key) -> None:
        if event.is_printable and event.character and event.key != "c":
            event.stop()
            self.post_message(self.Typed(event.character))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = event.offset

    def on_click(self, event: events.Click) -> None:
        if event.offset != self._pressed or self.screen.get_selected_text():
            return  # text was selected
        y = event.offset.y - self.content_region.y + self.region.y
        if self.new_below and y == self.scrollable_content_region.height - 1:
            self.follow_end()
        elif 0 <= y < len(self.shown.rows):
            number = self.shown.rows[y].number
            block = self.transcript.blocks[number - self.transcript.first]
            if block.foldable:
                self._chosen = number if self.has_focus else None
                self.toggle(block.key)

    # --- selecting text --------------------------------------------------------------------------

    @property
    def allow_select(self) -> bool:
        return True

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selected_text(self.shown, selection, GUTTER), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        del selection
        self._paint_rows()

    def _move_selection(self, lines: int) -> None:
        """The same text stays selected when other lines came above it."""
        selection = self.text_selection
        if lines and selection is not None and selection.start and selection.end:
            by = Offset(0, lines)
            moved = Selection(selection.start + by, selection.end + by)
            self.screen.selections = {**self.screen.selections, self: moved}


def _needs_ascii() -> bool:
    """Whether the terminal's encoding cannot show our symbols."""
    encoding = getattr(sys.__stdout__, "encoding", None) or "utf-8"
    return "utf" not in encoding.lower()
