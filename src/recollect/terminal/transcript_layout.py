"""Where every block of a transcript is on a screen, knowing only roughly what nobody has looked at.

Heights of blocks that were never in sight are estimates. What holds still is a *place*: a line of a
piece of a block. Whatever becomes known, is added on top, changes its height or its width, the
first line of the screen stays the line it was, or the end stays in sight if it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from textual.cache import LRUCache
from textual.strip import Strip

from recollect.terminal.block import Block
from recollect.terminal.block_layout import BlockLayout, GrowingLayout
from recollect.terminal.block_pieces import FOLDED_CALL, Piece, estimate_weights
from recollect.terminal.block_rendering import render_piece
from recollect.terminal.found_passage import count_words
from recollect.terminal.height_index import HeightIndex
from recollect.terminal.styled_lines import Look
from recollect.terminal.transcript_blocks import BlockList

KEPT_LAYOUTS, KEPT_PIECES = 300, 250
LINES_ABOVE = 3  # the words that a search found


class LinePlace(NamedTuple):
    """A line of a piece of a block; blocks are numbered as in the `BlockList`."""

    number: int
    piece: int = 0
    line: int = 0


class Row(NamedTuple):
    number: int  # of its block
    strip: Strip


class TranscriptLayout:
    """`settle` decides which `rows` are in sight; `top` is the first of them, in lines from the
    start. `following`: the end is in sight and stays there."""

    def __init__(self, transcript: BlockList) -> None:
        self.transcript = transcript
        self.look = Look(80)
        self.unfolded = False
        self.following = True
        self.place = LinePlace(0)
        self.top = 0
        self.rows: list[Row] = []
        self._toggled: set[str] = set()  # keys of blocks that are not as `unfolded` says
        self._heights = HeightIndex()
        self._weights: list[tuple[int, int, int]] = []
        self._layouts: LRUCache[int, BlockLayout] = LRUCache(KEPT_LAYOUTS)
        self._lines: LRUCache[Piece, list[Strip]] = LRUCache(KEPT_PIECES)
        self.replaced(0)

    @property
    def total(self) -> int:
        """Lines of everything, as far as that is known."""
        return self._heights.total

    def is_unfolded(self, block: Block) -> bool:
        return self.unfolded != (block.key in self._toggled)

    # --- changes ---------------------------------------------------------------------------------

    def replaced(self, start: int) -> None:
        """Blocks from this position on are new."""
        blocks = self.transcript.blocks
        self._heights.truncate(start)
        del self._weights[start:]
        self._weights += map(estimate_weights, blocks[start:])
        self._heights.extend(
            self._estimate(position) for position in range(start, len(self._weights))
        )
        if self.place.number - self.transcript.first >= len(blocks):
            self.place = LinePlace(self.transcript.first + max(0, len(blocks) - 1))

    def prepended(self, count: int) -> None:
        weights = [*map(estimate_weights, self.transcript.blocks[:count])]
        self._weights[:0] = weights
        self._heights.prepend([self._estimate(position) for position in range(count)])

    def changed(self, position: int) -> None:
        """One block is another now."""
        self._weights[position] = estimate_weights(self.transcript.blocks[position])
        self._heights[position] = self._estimate(position)

    def use(self, look: Look) -> None:
        """Render for another width or in other colours."""
        if look == self.look:
            return
        before, self.look = self.look, look
        share = self._share_of_piece() if before.width != look.width else None
        self._lines.clear()
        if share is not None:
            self._estimate_all()
            self._scale_place(share)

    def unfold(self, *, unfolded: bool) -> None:
        """Fold or unfold everything."""
        self.unfolded = unfolded
        self._toggled.clear()
        self.place = LinePlace(self.place.number)
        self._estimate_all()

    def toggle(self, key: str) -> None:
        """Fold or unfold one block, which stays where it begins."""
        position = self.transcript.position(key)
        if position is None:
            return
        self._toggled ^= {key}
        self._heights[position] = self._estimate(position)
        self.following = False  # until the end turns out to be in sight
        if self.transcript.first + position == self.place.number:
            self.place = LinePlace(self.place.number)

    def _estimate(self, position: int) -> int:
        folded, lines, size = self._weights[position]
        if folded:
            unfolded = self.unfolded
            if self._toggled:
                unfolded = self.is_unfolded(self.transcript.blocks[position])
            if not unfolded:
                follows = self._weights[position + 1 : position + 2]
                alone = folded == FOLDED_CALL and not (follows and follows[0][0] == FOLDED_CALL)
                return folded + alone
        return 2 + lines + size // self.look.room

    def _is_tight(self, position: int) -> bool:
        """Whether no empty line follows: calls in a row stand together while they are folded."""
        both = self.transcript.blocks[position : position + 2]
        return len(both) == 2 and all(
            block.kind == "tool" and not self.is_unfolded(block) for block in both
        )

    def _estimate_all(self) -> None:
        self._layouts.clear()
        self._heights = HeightIndex(map(self._estimate, range(len(self._weights))))

    def _share_of_piece(self) -> float:
        """How far down its piece the first line of the screen is."""
        layout = self._layouts.get(self.place.number)
        if layout is None or self.place.piece >= len(layout.heights):
            return 0.0
        return self.place.line / max(1, layout.heights[self.place.piece])

    def _scale_place(self, share: float) -> None:
        if share and self.transcript.blocks:
            lines = self._piece_lines(self.place.number, self.place.piece)
            self.place = self.place._replace(line=int(share * len(lines)))

    # --- pieces ----------------------------------------------------------------------------------

    def _layout(self, number: int) -> BlockLayout:
        position = number - self.transcript.first
        block = self.transcript.blocks[position]
        growing = self.transcript.growing
        grows = growing is not None and growing.key == block.key
        unfolded = self.is_unfolded(block) and not grows
        found = self._layouts.get(number)
        tight = self._is_tight(position)
        known = (
            found is not None
            and found.block is block
            and (found.unfolded, found.tight) == (unfolded, tight)
        )
        if found is None or not known or grows != isinstance(found, GrowingLayout):
            width = self.look.room
            found = (
                GrowingLayout(block, width=width)
                if grows
                else BlockLayout(block, unfolded=unfolded, width=width, tight=tight)
            )
            self._layouts.discard(number)  # what is set again is ignored
            self._layouts[number] = found
            found.read() if not grows else None
            self._note_height(number, found)
        return found

    def grow(self) -> None:
        """Take what has arrived of the last block."""
        growing = self.transcript.growing
        if growing is None or not self.transcript.blocks:
            return
        number = self.transcript.first + len(self.transcript.blocks) - 1
        if self.transcript.blocks[-1].key == growing.key:
            layout = self._layout(number)
            assert isinstance(layout, GrowingLayout)
            layout.grow(growing)
            self._note_height(number, layout)

    def _note_height(self, number: int, layout: BlockLayout) -> None:
        position = number - self.transcript.first
        if self._heights[position] != (height := layout.height):
            self._heights[position] = height

    def _piece_lines(self, number: int, piece: int) -> list[Strip]:
        """The lines of a piece, whose height is known from then on."""
        layout = self._layout(number)
        if piece >= len(layout.pieces):
            return []
        one = layout.pieces[piece]
        lines = self._lines.get(one)
        if lines is None:
            lines = self._lines[one] = render_piece(one, self.look)
        if layout.heights[piece] != len(lines):
            layout.heights[piece] = len(lines)
            self._note_height(number, layout)
        return lines

    def _pieces_from(self, number: int, piece: int) -> Iterator[tuple[int, int]]:
        end = self.transcript.first + len(self.transcript.blocks)
        while number < end:
            yield from ((number, n) for n in range(piece, len(self._layout(number).pieces)))
            number, piece = number + 1, 0

    def _pieces_before(self, number: int, piece: int | None = None) -> Iterator[tuple[int, int]]:
        """The pieces above this one, the nearest first; of the blocks above, without a piece."""
        if piece is not None:
            yield from ((number, n) for n in range(piece - 1, -1, -1))
        for above in range(number - 1, self.transcript.first - 1, -1):
            count = len(self._layout(above).pieces)
            yield from ((above, n) for n in range(count - 1, -1, -1))

    # --- what is in sight ------------------------------------------------------------------------

    def settle(self, height: int) -> None:
        """Decide what is in sight, on a screen of so many lines."""
        self.grow()
        if not self.transcript.blocks:
            self.rows, self.top, self.following = [], 0, True
            return
        if self.following:
            self.place = self._place_before_end(height)
        self.rows, at_end = self._rows_from(self.place, height)
        if at_end and not self.following:
            self.following = True
            self.place = self._place_before_end(height)
            self.rows, _ = self._rows_from(self.place, height)
        self.top = self._line_of(self.place)

    def move(self, lines: int) -> None:
        """Another first line: so many further down, or up."""
        self.following = False
        number, piece, line = self.place
        if line + lines >= 0:
            self._move_down(line + lines)
            return
        left = -lines - line
        for above, one in self._pieces_before(number, piece):
            left -= len(self._piece_lines(above, one))
            if left <= 0:
                self.place = LinePlace(above, one, -left)
                return
        self.place = LinePlace(self.transcript.first)

    def _move_down(self, left: int) -> None:
        """So many lines down from the beginning of the first piece in sight."""
        for number, piece in self._pieces_from(self.place.number, self.place.piece):
            count = len(self._piece_lines(number, piece))
            if left < count:
                self.place = LinePlace(number, piece, left)
                return
            left -= count
        self.following = True

    def go_to(self, line: int) -> None:
        """Another first line, far away."""
        self.following = False
        self.place = self._place_at(line)

    def show_block(self, number: int, height: int) -> None:
        """Move as little as possible so that a block is in sight, its beginning above all."""
        top = self._line_of(LinePlace(number))
        lines = sum(
            len(self._piece_lines(number, n)) for n in range(len(self._layout(number).pieces))
        )
        if top < self.top or lines >= height:
            self.following, self.place = False, LinePlace(number)
        elif (below := top + lines - self.top - height) > 0:
            self.move(below)

    def show_words(self, number: int, words: tuple[str, ...]) -> None:
        """Begin with the line of a block that has most of these words, or with its beginning."""
        self.following, self.place = False, LinePlace(number)
        pieces = self._layout(number).pieces
        counts = [count_words(piece.text, words) for piece in pieces]
        if not any(counts):
            return
        piece = counts.index(max(counts))
        found = [count_words(strip.text, words) for strip in self._piece_lines(number, piece)]
        if any(found):
            self.place = LinePlace(number, piece, found.index(max(found)))
            self.move(-LINES_ABOVE)

    def texts(self, start: int, end: int) -> Iterator[str]:
        """The text of lines, both ends included."""
        if self.transcript.blocks:
            place = self._place_at(start)
            start_line = self._line_of(place)
            rows, _ = self._rows_from(place, end - start_line + 1)
            yield from (row.strip.text for row in rows[start - start_line :])

    def _rows_from(self, place: LinePlace, height: int) -> tuple[list[Row], bool]:
        """The lines from a place on, and whether the last of all is among them."""
        rows: list[Row] = []
        skip = place.line
        for number, piece in self._pieces_from(place.number, place.piece):
            lines = self._piece_lines(number, piece)
            skip = min(skip, max(0, len(lines) - 1))
            rows += (Row(number, strip) for strip in lines[skip:])
            skip = 0
            if len(rows) > height:
                return rows[:height], False
        return rows, True

    def _place_before_end(self, height: int) -> LinePlace:
        """Where a screen begins whose last line is the last of all."""
        left = height
        end = self.transcript.first + len(self.transcript.blocks)
        for number, piece in self._pieces_before(end):
            left -= len(self._piece_lines(number, piece))
            if left <= 0:
                return LinePlace(number, piece, -left)
        return LinePlace(self.transcript.first)

    def _line_of(self, place: LinePlace) -> int:
        layout = self._layout(place.number)
        before = self._heights.before(place.number - self.transcript.first)
        return before + sum(layout.heights[: place.piece]) + place.line

    def _place_at(self, line: int) -> LinePlace:
        position, offset = self._heights.find(max(0, line))
        number = position + self.transcript.first
        heights = self._layout(number).heights
        for piece, height in enumerate(heights):
            if offset < height:
                return LinePlace(number, piece, offset)
            offset -= height
        return LinePlace(number, max(0, len(heights) - 1))
