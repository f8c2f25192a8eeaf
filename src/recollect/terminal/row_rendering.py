"""A row of the context as one line: tokens, a bar, who, marks, and what it says.

Left-out rows are dim and have the tokens that are hidden in parentheses.
"""

from __future__ import annotations

from recollect.display.context_rows import ContextRow
from recollect.display.display_text import display_width, pad, truncate
from recollect.display.home_paths import abbreviate_paths
from recollect.display.token_bar import draw_bar
from recollect.terminal.palette import StyleName
from recollect.terminal.row_list import Row

BAR, WHO, TOKENS = 8, 12, 9
NARROW = 60  # columns, below which there is no bar
NARROW_WHO, NARROW_TOKENS = 6, 6


def make_row(row: ContextRow, most: int, width: int, folder: str) -> Row:
    """`most` tokens fill the bar; paths are shown as in this folder."""
    style: StyleName = "dim" if row.is_grey else "plain"
    hidden = row.kind in ("left_out", "replaced")
    tokens = f"({row.hidden:,})" if hidden else f"{row.tokens:,}"
    bar, count, who = pad(draw_bar(row.tokens, most, BAR), BAR + 1), TOKENS, WHO
    if width < NARROW:
        bar, count, who = "", NARROW_TOKENS, NARROW_WHO
    marks = f"[{row.marks}] " if row.marks else ""
    used = max(count, len(tokens)) + 1 + display_width(bar) + who + 1 + display_width(marks)
    return [
        (pad(tokens, count, right=True) + " ", style),
        (bar, "bar"),
        (pad(truncate(row.who, who), who) + " ", style),
        (marks, "warned"),
        (truncate(abbreviate_paths(row.text, folder), max(1, width - used)), style),
    ]
