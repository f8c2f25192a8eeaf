"""A row of the context as one line: tokens, a bar, who, marks, and what it says.

Left-out rows are grey and have the tokens that are hidden in parentheses.
"""

from __future__ import annotations

from rich.style import Style
from rich.text import Text as RichText

from recollect.display.context_rows import ContextRow
from recollect.display.display_text import pad, truncate
from recollect.display.token_bar import draw_bar

BAR, WHO, TOKENS = 8, 12, 9
NARROW = 60  # columns: without the bar
_GREY, _BAR, _MARK = Style(dim=True), Style(color="blue"), Style(color="yellow")


def draw_row(row: ContextRow, most: int, width: int) -> RichText:
    grey = _GREY if row.is_grey else Style()
    hidden = row.kind in ("left_out", "replaced")
    tokens = f"({row.hidden:,})" if hidden else f"{row.tokens:,}"
    text = RichText(no_wrap=True, style=grey)
    text.append(pad(tokens, TOKENS, right=True) + " ")
    who = WHO
    if width >= NARROW:
        text.append(pad(draw_bar(row.tokens, most, BAR), BAR) + " ", _BAR)
    else:
        who = 6
    text.append(pad(truncate(row.who, who), who) + " ")
    if row.marks:
        text.append(f"[{row.marks}] ", _MARK)
    text.append(truncate(row.text, max(4, width - text.cell_len)))
    return text
