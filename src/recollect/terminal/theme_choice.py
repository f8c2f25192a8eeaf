"""Which of Textual's themes the setting `terminal.theme` means."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.settings.setting_definitions import ThemeName

DARK, LIGHT = "textual-dark", "textual-light"
_LIGHT_COLOURS = ("7", "9", "10", "11", "12", "13", "14", "15")  # as a background


def choose_theme(setting: ThemeName, environment: Mapping[str, str]) -> str:
    """`auto` follows COLORFGBG, which some terminals set to `foreground;background`; dark without
    it."""
    if setting == "auto":
        background = environment.get("COLORFGBG", "").rpartition(";")[2].strip()
        return LIGHT if background in _LIGHT_COLOURS else DARK
    return LIGHT if setting == "light" else DARK
