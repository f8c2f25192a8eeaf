"""Source code in colours, for dark and light screens.

Only the colours and weights of a style are used; the background is the screen's. Code with very long
lines, or in a language that nobody knows, is shown without colours.
"""

from __future__ import annotations

from functools import lru_cache

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.styles import get_style_by_name
from pygments.token import _TokenType
from pygments.util import ClassNotFound
from rich.segment import Segment
from rich.style import Style

from recollect.terminal.styled_lines import TAB, Line, fold_line, fold_text

MAX_HIGHLIGHTED = 8_000  # characters
_MAX_LINE = 1_000
_STYLES = {True: "github-dark", False: "xcode"}


@lru_cache(64)
def _lexer(language: str) -> Lexer | None:
    name = language.split()[0].strip("{}.").lower() if language.split() else ""
    try:
        return get_lexer_by_name(name, stripnl=False, ensurenl=False) if name else None
    except ClassNotFound:
        return None


@lru_cache(512)
def _style(kind: _TokenType, dark: bool) -> Style:  # noqa: FBT001 - a cached function's key
    found = get_style_by_name(_STYLES[dark]).style_for_token(kind)
    color = f"#{found['color']}" if found["color"] else None
    return Style(color=color, bold=found["bold"] or None, italic=found["italic"] or None)


def highlight_code(text: str, language: str, width: int, *, dark: bool) -> list[Line]:
    """A clean text as lines of this width."""
    lexer = _lexer(language)
    long = any(len(line) > _MAX_LINE for line in text.split("\n"))
    if lexer is None or long or len(text) > MAX_HIGHLIGHTED:
        return fold_text(text, width)
    lines: list[Line] = [[]]
    for kind, value in lexer.get_tokens(text.expandtabs(TAB)):
        style = _style(kind, dark)
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(Segment(part, style))
    return [folded for line in lines for folded in fold_line(line, width)]
