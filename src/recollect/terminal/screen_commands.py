"""Commands that open a screen of their own; the others answer in text."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

from recollect.terminal.settings_commands import run_theme
from recollect.terminal.stats_commands import copy_reply
from recollect.terminal.terminal_events import NoticeGiven

if TYPE_CHECKING:
    from recollect.terminal.terminal_app import TerminalApp

# What the command was given is the second argument; it returns when the screen is closed.
ScreenCommand: TypeAlias = Callable[["TerminalApp", str], Awaitable[None]]


async def _copy(app: TerminalApp, arguments: str) -> None:
    text = await copy_reply(app.runner, arguments)
    app.copy_to_clipboard(text)
    app.chat.show_event(NoticeGiven(f"copied {len(text):,} characters", "info"))


async def _theme(app: TerminalApp, arguments: str) -> None:
    app.chat.show_event(NoticeGiven(await run_theme(app.runner, arguments), "info"))
    app.apply_theme()


SCREEN_COMMANDS: dict[str, ScreenCommand] = {"copy": _copy, "theme": _theme}
