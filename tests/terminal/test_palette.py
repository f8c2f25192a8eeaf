"""What is shown can be read: text differs enough from what is under it, in both themes."""

from __future__ import annotations

import pytest
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from recollect.terminal.palette import theme_palette
from recollect.terminal.theme_choice import DARK, LIGHT_THEME

ENOUGH = 4.5  # the contrast that the guidelines for accessible content ask of text
TEXT_VARIABLES = ("text-warning", "text-success", "text-error", "text-accent", "text-primary")


def brightness(color: Color) -> float:
    parts = (value / 255 for value in (color.r, color.g, color.b))
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(text: Color, under: Color) -> float:
    low, high = sorted((brightness(text), brightness(under)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [BUILTIN_THEMES[DARK], LIGHT_THEME], ids=["dark", "light"])
def test_every_text_has_contrast(theme: Theme) -> None:
    variables = theme.to_color_system().generate()
    background = Color.parse(variables["background"])
    for name in TEXT_VARIABLES:
        assert contrast(Color.parse(variables[name]), background) >= ENOUGH, name
    palette = theme_palette(variables)
    for name, style in zip(palette._fields, palette, strict=True):
        if style.color is not None and style.color.triplet is not None:
            under = Color.from_rich_color(style.bgcolor) if style.bgcolor else background
            assert contrast(Color.from_rich_color(style.color), under) >= ENOUGH, name
