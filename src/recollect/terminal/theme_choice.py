"""Which theme the setting `terminal.theme` means, and our light one: in Textual's own, yellow and
green text can hardly be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from textual.theme import BUILTIN_THEMES

from recollect.settings.setting_definitions import ThemeName

DARK, LIGHT = "textual-dark", "recollect-light"
LIGHT_THEME = replace(
    BUILTIN_THEMES["textual-light"],
    name=LIGHT,
    warning="#805000",
    accent="#805000",
    success="#216537",
    error="#96283F",
)
_LIGHT_COLOURS = ("7", "9", "10", "11", "12", "13", "14", "15")  # as a background


def choose_theme(setting: ThemeName, environment: Mapping[str, str]) -> str:
    """`auto` follows COLORFGBG, which some terminals set to `foreground;background`; dark without
    it."""
    if setting == "auto":
        background = environment.get("COLORFGBG", "").rpartition(";")[2].strip()
        return LIGHT if background in _LIGHT_COLOURS else DARK
    return LIGHT if setting == "light" else DARK
