"""Commands that open a screen of their own; the others answer in text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from recollect.terminal import context_screens

if TYPE_CHECKING:
    from recollect.terminal.terminal_app import TerminalApp

# What the command was given is the second argument; it returns when the screen is closed.
ScreenCommand: TypeAlias = Callable[["TerminalApp", str], Awaitable[None]]

SCREEN_COMMANDS: dict[str, ScreenCommand] = {
    "context": context_screens.show_context,
    "compact": context_screens.show_compaction,
    "recall": context_screens.show_recalled,
    "search": context_screens.show_found,
}
