"""Source code in colours, for dark and light screens.

Only the colours and weights of a style are used; the background is the screen's. Code with very
long lines, or in a language that nobody knows, is shown without colours.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Protocol, TypeAlias

from rich.segment import Segment
from rich.style import Style
from rich.syntax import PygmentsSyntaxTheme, Syntax

from recollect.terminal.styled_lines import TAB, Line, fold_line, fold_text

TokenKind: TypeAlias = tuple[str, ...]


class Lexer(Protocol):
    def get_tokens(self, text: str) -> Iterable[tuple[TokenKind, str]]: ...


MAX_HIGHLIGHTED = 8_000  # characters
_MAX_LINE = 1_000
_STYLES = {True: "github-dark", False: "xcode"}


@lru_cache(64)
def _lexer(language: str) -> Lexer | None:
    name = language.strip().partition(" ")[0].strip("{}.").lower()
    return Syntax("", name).lexer if name else None


@lru_cache(2)
def _theme(name: str) -> PygmentsSyntaxTheme:
    return PygmentsSyntaxTheme(name)


@lru_cache(512)
def _style(kind: TokenKind, theme: str) -> Style:
    found = _theme(theme).get_style_for_token(kind)
    return Style(color=found.color, bold=found.bold or None, italic=found.italic or None)


def highlight_code(text: str, language: str, width: int, *, dark: bool) -> list[Line]:
    """A clean text as lines of this width."""
    lexer = _lexer(language)
    long = any(len(line) > _MAX_LINE for line in text.split("\n"))
    if lexer is None or long or len(text) > MAX_HIGHLIGHTED:
        return fold_text(text, width)
    lines: list[Line] = [[]]
    for kind, value in lexer.get_tokens(text.expandtabs(TAB)):
        style = _style(kind, _STYLES[dark])
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append(Segment(part, style))
    if not text.endswith("\n") and len(lines) > 1 and not lines[-1]:
        lines.pop()  # the lexer ends every text with a line end
    return [folded for line in lines for folded in fold_line(line, width)]
