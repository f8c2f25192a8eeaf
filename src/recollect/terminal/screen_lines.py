"""The first and the last lines of a screen: what it shows, what was said, and what keys do."""

from __future__ import annotations

from textual.events import Resize
from textual.widgets import Static

from recollect.display.display_text import display_width, sanitize, truncate

DOT = " · "


def fit_keys(keys: tuple[str, ...], width: int, lines: int = 2) -> str:
    """As many as there is room for, none of them cut; the last, which leaves, comes first."""
    found: list[str] = []
    for count in range(len(keys) - 1, -1, -1):
        found = _join_keys((*keys[:count], *keys[-1:]), width)
        if len(found) <= lines:
            break
    return "\n".join(truncate(line, width) for line in found[:lines])


def _join_keys(keys: tuple[str, ...], width: int) -> list[str]:
    found: list[str] = []
    for key in keys:
        if found and display_width(found[-1] + DOT + key) <= width:
            found[-1] += DOT + key
        else:
            found.append(key)
    return found


class TitleLine(Static):
    DEFAULT_CSS = """
    TitleLine {
        height: 1; padding: 0 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(text, id="title", markup=False)


class ProblemLine(Static):
    """What went wrong, or what is being done; gone while there is nothing to say."""

    DEFAULT_CSS = """
    ProblemLine { height: auto; max-height: 3; padding: 0 1; color: $text-warning; display: none; }
    """

    def __init__(self) -> None:
        super().__init__("", id="problem", markup=False)

    def say(self, text: str) -> None:
        self.update(sanitize(text))
        self.display = bool(text)


class KeyLine(Static):
    """The keys of a screen; the last of them leaves it."""

    DEFAULT_CSS = """
    KeyLine { height: auto; max-height: 2; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, *keys: str) -> None:
        super().__init__("", id="keys", markup=False)
        self.keys = keys

    def show(self, *keys: str) -> None:
        self.keys = keys
        self._paint()

    def on_mount(self) -> None:
        self._paint()

    def on_resize(self, event: Resize) -> None:
        del event
        self._paint()

    def _paint(self) -> None:
        self.update(fit_keys(self.keys, max(10, self.app.size.width - 2)))
