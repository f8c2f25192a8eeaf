"""The pieces of one block and their heights, as far as they are known."""

from __future__ import annotations

from recollect.terminal.block import Block
from recollect.terminal.block_pieces import (
    Piece,
    end_with_gap,
    estimate_piece,
    growing_call,
    growing_thought,
    markdown_pieces,
    pieces_of,
)
from recollect.terminal.markdown_pieces import MarkdownSplitter
from recollect.terminal.transcript_blocks import GrowingText


class BlockLayout:
    """The pieces of a block and their heights, as far as they are known."""

    def __init__(self, block: Block, *, unfolded: bool, width: int, tight: bool = False) -> None:
        self.block, self.unfolded, self.width, self.tight = block, unfolded, width, tight
        self.pieces: list[Piece] = []
        self.heights: list[int] = []

    def read(self) -> None:
        self._put(0, pieces_of(self.block, unfolded=self.unfolded, tight=self.tight))

    def _put(self, start: int, pieces: list[Piece]) -> None:
        self.pieces[start:] = pieces
        self.heights[start:] = (estimate_piece(piece, self.width) for piece in pieces)

    @property
    def height(self) -> int:
        return sum(self.heights)


class GrowingLayout(BlockLayout):
    """Of the block that is arriving: what is settled of it is not looked at again."""

    def __init__(self, block: Block, *, width: int) -> None:
        super().__init__(block, unfolded=False, width=width)
        self._splitter = MarkdownSplitter()
        self._taken = self._settled = self._lines = 0
        self._start = ""  # of a call's arguments

    def grow(self, growing: GrowingText) -> None:
        new = "".join(growing.pieces[self._taken :])
        self._taken = len(growing.pieces)
        if self.block.kind == "reply":
            self._splitter.feed(new)
            settled = [*markdown_pieces(self._splitter.pieces[self._settled :])]
            tail = [*markdown_pieces(self._splitter.tail())]
            start, self._settled = self._settled, len(self._splitter.pieces)
            more = [*settled, *tail]
            self._put(start, end_with_gap(more) if more or not start else [])
        elif self.block.kind == "thought":
            self._lines += new.count("\n")
            self._put(0, growing_thought(self._lines + 1))
        else:
            self._start += new[: max(0, 2_000 - len(self._start))]
            self._put(0, growing_call(self.block.name, self._start, growing.size))
