"""The styles of everything that is shown, by what it is; one home for the colours of all screens.

Their colours are those of the theme, so that each has contrast on a dark and on a light background.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias

from rich.style import Style
from textual.color import Color
from textual.widget import Widget

# of a row or a piece of it
StyleName: TypeAlias = Literal[
    "plain", "strong", "dim", "warned", "added", "removed", "tool", "bar"
]
DIM = 0.66  # how much of the text's colour dim text has


class Palette(NamedTuple):
    """As a terminal without a theme shows them."""

    plain: Style = Style()
    strong: Style = Style(bold=True)
    user: Style = Style(bold=True)
    user_mark: Style = Style(color="cyan", bold=True)
    heading: Style = Style(bold=True)
    code: Style = Style()  # a block of it: the background
    inline_code: Style = Style(color="cyan")
    link: Style = Style(underline=True)
    dim: Style = Style(dim=True)
    failed: Style = Style(color="red")
    warned: Style = Style(color="yellow")
    added: Style = Style(color="green")
    removed: Style = Style(color="red")
    tool: Style = Style(color="cyan")
    bar: Style = Style(color="cyan")
    chosen: Style = Style(color="cyan", bold=True)
    below: Style = Style(reverse=True)
    cursor: Style = Style(reverse=True)  # of a list: its whole row


def read_palette(widget: Widget) -> Palette:
    """In the theme of now, for what is shown in this widget."""
    variables = widget.app.theme_variables
    _, _, background, color = widget.colors  # dim is between the text and what is under it
    return theme_palette(variables)._replace(
        dim=Style(color=background.blend(color, DIM).rich_color)
    )


def theme_palette(variables: Mapping[str, str]) -> Palette:
    def style(color: str, background: str = "", *, bold: bool | None = None) -> Style:
        under = Color.parse(variables[background]).rich_color if background else None
        return Style(color=Color.parse(variables[color]).rich_color, bgcolor=under, bold=bold)

    return Palette(
        user=style("foreground", "surface"),
        user_mark=style("text-primary", "surface"),
        heading=style("text-primary", bold=True),
        code=Style(bgcolor=Color.parse(variables["surface"]).rich_color),
        inline_code=style("text-accent"),
        failed=style("text-error"),
        warned=style("text-warning"),
        added=style("text-success", "success-muted"),
        removed=style("text-error", "error-muted"),
        tool=style("text-primary"),
        bar=style("text-primary"),
        chosen=style("accent"),
        below=style("background", "accent"),
        cursor=_cursor_style(Color.parse(variables["block-cursor-background"])),
    )


def _cursor_style(background: Color) -> Style:
    text = background.get_contrast_text(1.0)
    return Style(color=text.rich_color, bgcolor=background.rich_color, bold=True)
