"""The conversation as a scrolling widget that renders only what is visible.

Heights of blocks that were never seen are estimated, and corrected when they come into sight, so a
session of 10,000 entries opens and scrolls like a short one. While the end is in sight it stays in
sight; whoever has scrolled up is left where they are.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate

from rich.segment import Segment
from textual.cache import LRUCache
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message as TextualMessage
from textual.scroll_view import ScrollView
from textual.strip import Strip

from recollect.terminal.block_rendering import Look, estimate_height, render_block
from recollect.terminal.transcript_blocks import Block, BlockList

RENDERED_BLOCKS = 400  # kept as lines


class TranscriptView(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    TranscriptView { height: 1fr; padding: 0 1; scrollbar-size-vertical: 1; }
    """
    BINDINGS = [
        ("ctrl+o", "unfold", "Unfold tools"),
    ]

    class TopReached(TextualMessage):
        """The beginning of what is loaded is in sight."""

    def __init__(self, transcript: BlockList) -> None:
        super().__init__()
        self.transcript = transcript
        self.unfolded = False
        self._toggled: set[str] = set()  # keys of blocks that are not as `unfolded` says
        self._heights: list[int] = []
        self._ends: list[int] = []  # the line after each block
        self._lines: LRUCache[tuple[object, ...], list[Strip]] = LRUCache(RENDERED_BLOCKS)
        transcript.on_change = self.blocks_changed

    # --- what is shown ---------------------------------------------------------------------------

    @property
    def look(self) -> Look:
        width = max(10, self.scrollable_content_region.width)
        return Look(width, dark=self.app.current_theme.dark)

    def is_unfolded(self, block: Block) -> bool:
        return self.unfolded != (block.key in self._toggled)

    def blocks_changed(self, start: int) -> None:
        """Blocks from here on are new or different."""
        at_end = self.is_vertical_scroll_end or not self._ends
        look, blocks = self.look, self.transcript.blocks
        del self._heights[start:]
        self._heights += (
            estimate_height(block, look.width, unfolded=self.is_unfolded(block))
            for block in blocks[start:]
        )
        self._measure_end(look)
        self._place(start)
        if at_end:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        self.refresh()

    def _measure_end(self, look: Look) -> None:
        """Know the height of the last screenful, which is usually the one in sight."""
        left = self.size.height + 1
        for position in range(len(self._heights) - 1, -1, -1):
            self._heights[position] = len(self._block_lines(position, look))
            left -= self._heights[position]
            if left <= 0:
                break

    def _place(self, start: int = 0) -> None:
        start = min(start, len(self._ends))
        del self._ends[start:]
        before = self._ends[-1] if self._ends else 0
        self._ends += list(accumulate(self._heights[start:], initial=before))[1:]
        self.virtual_size = Size(self.look.width, self._ends[-1] if self._ends else 0)

    def _block_lines(self, position: int, look: Look) -> list[Strip]:
        block = self.transcript.blocks[position]
        unfolded = self.is_unfolded(block)
        key = (block, look, unfolded)
        lines = self._lines.get(key)
        if lines is None:
            lines = self._lines[key] = render_block(block, look, unfolded=unfolded)
        return lines

    def block_at(self, y: int) -> tuple[int, int] | None:
        """The position of the block at a line of the whole, and its first line."""
        position = bisect_right(self._ends, y)
        if position >= len(self._ends):
            return None
        return position, self._ends[position] - self._heights[position]

    def render_line(self, y: int) -> Strip:
        width, style = self.scrollable_content_region.width, self.rich_style
        line = self._line(self.scroll_offset.y + y)
        return line.crop_extend(0, width, style).apply_style(style)

    def _line(self, y: int) -> Strip:
        look = self.look
        found = self.block_at(y)
        if found is None:
            return Strip([Segment("")])
        position, first = found
        lines = self._block_lines(position, look)
        if len(lines) != self._heights[position]:
            self._heights[position] = len(lines)
            self.call_later(self._replace, position)
        offset = y - first
        return lines[offset] if 0 <= offset < len(lines) else Strip([Segment("")])

    def _replace(self, position: int) -> None:
        """A block turned out to have another height: what is in sight stays where it is."""
        at_end = self.is_vertical_scroll_end
        before = self._ends[position] if position < len(self._ends) else 0
        self._place(position)
        if at_end:
            self.scroll_end(animate=False, immediate=True, x_axis=False)
        elif before <= self.scroll_offset.y:
            self.scroll_relative(y=self._ends[position] - before, animate=False, immediate=True)
        self.refresh()

    # --- events ----------------------------------------------------------------------------------

    def on_resize(self, event: Resize) -> None:
        del event
        self.blocks_changed(0)

    def watch_scroll_y(self, old: float, new: float) -> None:
        super().watch_scroll_y(old, new)
        if round(new) == 0 and old > new:
            self.post_message(self.TopReached())

    def action_unfold(self) -> None:
        self.unfolded = not self.unfolded
        self._toggled.clear()
        self.blocks_changed(0)

    def toggle(self, key: str) -> None:
        """Fold or unfold one block."""
        self._toggled ^= {key}
        position = next((n for n, one in enumerate(self.transcript.blocks) if one.key == key), 0)
        self.blocks_changed(position)
