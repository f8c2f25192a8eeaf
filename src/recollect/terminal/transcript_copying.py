"""What is copied of a transcript: a whole block as it was stored, or lines that were selected."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.selection import Selection
from textual.strip import Strip

from recollect.terminal.block import OWN_COMMAND, Block
from recollect.terminal.call_summary import title_of_call
from recollect.terminal.transcript_layout import TranscriptLayout

MAX_SELECTED = 20_000  # lines


def block_text(block: Block) -> str:
    if block.kind != "tool" and block.name != OWN_COMMAND:
        return block.text
    title = title_of_call(block) if block.kind == "tool" else block.text
    return "\n".join(filter(None, (title, block.output)))


def selected_text(shown: TranscriptLayout, selection: Selection, gutter: int) -> str:
    """The selected lines, without the marks before them and the blanks after them."""
    start, end = selection
    first = start.y if start is not None else 0
    last = end.y if end is not None else shown.total - 1
    last = min(last, first + MAX_SELECTED)
    found = []
    for number, text in enumerate(shown.texts(first, last), first):
        span = selection.get_span(number)
        if span is None:
            continue
        left, right = span
        found.append(text[max(gutter, left) : len(text) if right == -1 else right].rstrip())
    return "\n".join(found)


def highlight(strip: Strip, span: tuple[int, int] | None, style: Style) -> Strip:
    """A line with some of its characters marked as selected."""
    if span is None:
        return strip
    start, end = span
    segments, at = list[Segment](), 0
    for text, own, _ in strip:
        stop = len(text) if end == -1 else max(0, min(len(text), end - at))
        begin = max(0, min(stop, start - at))
        marked = (own or Style()) + style
        parts = ((text[:begin], own), (text[begin:stop], marked), (text[stop:], own))
        segments += (Segment(part, each) for part, each in parts if part)
        at += len(text)
    return Strip(segments, strip.cell_length)
