"""Pieces of blocks as lines: a gutter with a mark, and beside it what was said or done.

Pure: the same piece and look give the same lines. Everything that a model, a tool or a file said is
cleaned here, so that no control character reaches the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from recollect.display.display_text import one_line, truncate
from recollect.terminal.block import Block
from recollect.terminal.block_pieces import Piece
from recollect.terminal.call_summary import title_of_call
from recollect.terminal.markdown_rendering import render_code, render_markdown
from recollect.terminal.styled_lines import (
    GUTTER,
    PLAIN,
    Line,
    Look,
    difference_style,
    fill_lines,
    finish,
    fold_text,
    line_width,
    prefix_lines,
    wrap_spans,
)

_MARKS = {"running": "○", "done": "●", "failed": "✗", "interrupted": "◌"}
_CHANGE = re.compile(r"(\+\d+)(?: ([−-]\d+))?")
_SECONDS = re.compile(r"[\d.]+ s")


def render_piece(piece: Piece, look: Look) -> list[Strip]:
    lines = _render(piece, look)
    if piece.gap:
        lines.append([])
    return finish(lines, look)


def call_title(block: Block) -> str:
    """A call in one line, clean: what it does, with what."""
    return one_line(title_of_call(block))


def _render(piece: Piece, look: Look) -> list[Line]:  # noqa: C901 - one case per kind
    palette, room = look.palette, look.room
    match piece.kind:
        case "user":
            return _user(piece, look)
        case "prose":
            return _indented(render_markdown(piece.text, look, room))
        case "code":
            return _indented(render_code(piece.text, piece.info, look, room))
        case "thought":
            lines = wrap_spans([(look.clean(piece.text), palette.dim)], room - 2)
            return _indented(lines, 2)
        case "thinking":
            return _thinking(piece, look)
        case "call":
            return _call(piece, look)
        case "field":
            name = f"{_one_line(piece.info, look)}: " if piece.first else ""
            return _indented(fold_text(name + look.clean(piece.text), room - 2, palette.dim), 2)
        case "text":
            return _indented(fold_text(look.clean(piece.text), room - 2, palette.dim), 2)
        case "source":
            return _indented(render_code(piece.text, piece.info, look, room - 2), 2)
        case "diff":
            return _indented([*_diff(piece, look)], 2)
        case "more":
            return _indented(wrap_spans([(look.clean(piece.text), palette.dim)], room - 2), 2)
        case "answer" | "info" | "warning" | "error":
            return _notice(piece, look)
        case "gap":
            return []


def _indented(lines: list[Line], more: int = 0) -> list[Line]:
    return prefix_lines(lines, " " * (GUTTER + more), PLAIN)


def _one_line(text: str, look: Look) -> str:
    return look.clean(" ".join(text.split()))


def _user(piece: Piece, look: Look) -> list[Line]:
    bar = f"{look.mark('▌')} "
    lines = wrap_spans([(look.clean(piece.text), PLAIN)], look.room - 1) or [[]]
    style = look.palette.user
    return [*fill_lines(prefix_lines(lines, bar, look.palette.user_mark, bar), look.width, style)]


def _thinking(piece: Piece, look: Look) -> list[Line]:
    """One dim line, with the number of lines."""
    count = int(piece.info)
    lines = f"{count:,} line{'' if count == 1 else 's'}"
    if piece.state == "running" or not piece.text:
        word = "thinking" if piece.state == "running" else "thought"
        text = f"{word} {look.mark('·')} {lines}"
    else:
        said = _one_line(piece.text.replace("**", ""), look)
        said = truncate(said, max(8, look.room - len(lines) - 14))
        text = f"thought {look.mark('·')} {lines} {look.mark('·')} {look.clean(said)}"
    return _indented([[Segment(text, look.palette.dim)]])


def _call(piece: Piece, look: Look) -> list[Line]:
    """What a call does and what came of it, in one line."""
    palette = look.palette
    style = {"failed": palette.failed, "interrupted": palette.warned}.get(piece.state, palette.tool)
    dot = f" {look.mark('·')} "
    facts = [_one_line(fact, look) for fact in piece.info.split("\n") if fact]
    title = _one_line(piece.text, look)
    wanted = sum(cell_len(fact) + len(dot) for fact in facts)
    title = look.clean(truncate(title, max(look.room - wanted, look.room * 3 // 5)))
    line: Line = [Segment(f"{look.mark(_MARKS[piece.state])} ", style)]
    verb, space, rest = title.partition(" ")
    line += [Segment(verb + space, style), Segment(rest, PLAIN)]
    for fact in facts:
        left = look.width - line_width(line) - len(dot)
        if left < 4:
            break
        line.append(Segment(dot, palette.dim))
        failed = piece.state == "failed" and not _SECONDS.fullmatch(fact)
        line += _fact(look.clean(truncate(fact, left)), look, failed=failed)
    return [line]


def _fact(text: str, look: Look, *, failed: bool) -> Iterator[Segment]:
    change = _CHANGE.fullmatch(text)
    if change is None:
        yield Segment(text, look.palette.failed if failed else look.palette.dim)
        return
    yield Segment(change[1], Style(color=look.palette.added.color))
    if change[2]:
        yield Segment(f" {change[2]}", Style(color=look.palette.removed.color))


def _diff(piece: Piece, look: Look) -> Iterator[Line]:
    width = look.room - 2
    for text in look.clean(piece.text).split("\n"):
        style = getattr(look.palette, difference_style(text))
        lines = fold_text(text, width, style)
        yield from lines if style.bgcolor is None else fill_lines(lines, width, style)


def _notice(piece: Piece, look: Look) -> list[Line]:
    palette = look.palette
    styles = {"answer": PLAIN, "warning": palette.warned, "error": palette.failed}
    style = styles.get(piece.kind, palette.dim)
    lines = wrap_spans([(look.clean(piece.text), style)], look.room) or [[]]
    return prefix_lines(lines, f"{look.mark('·')} " if piece.first else "  ", style, "  ")
