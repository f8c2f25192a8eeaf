"""The terminal program: one conversation, and screens over it.

A screen parses keys, asks for approval and shows events; `SessionRunner` does the work.
"""

from __future__ import annotations

import os
from contextlib import suppress

from textual.app import App

from recollect.errors import RecollectError
from recollect.terminal.chat_screen import ChatScreen
from recollect.terminal.screen_commands import SCREEN_COMMANDS
from recollect.terminal.session_runner import SessionRunner, StartOptions
from recollect.terminal.terminal_events import TerminalEvent
from recollect.terminal.theme_choice import choose_theme


class TerminalApp(App[int]):
    TITLE = "recollect"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = [("ctrl+d", "leave", "Leave")]

    def __init__(self, options: StartOptions) -> None:
        super().__init__()
        self.runner = SessionRunner(options, self._told)
        self.chat = ChatScreen(self.runner, self.run_screen_command)

    async def on_mount(self) -> None:
        await self.push_screen(self.chat)
        self.run_worker(self._serve(), name="session", exit_on_error=True)
        self.run_worker(self._follow_settings(), name="theme")
        if name := self.runner.options.initial_screen:
            self.run_worker(self.run_screen_command(name, ""), name="initial screen")

    async def _serve(self) -> None:
        try:
            await self.runner.run()
        except RecollectError as error:
            self.exit(1, message=str(error))
            return
        self.exit(0)

    async def run_screen_command(self, name: str, arguments: str) -> bool:
        """Whether this command has a screen, which was shown until it was closed."""
        if name not in SCREEN_COMMANDS:
            return False
        await SCREEN_COMMANDS[name](self, arguments)
        return True

    def apply_theme(self) -> None:
        """The colours that the settings name, as soon as they are read."""
        self.theme = choose_theme(self.runner.runtime.settings.terminal.theme, os.environ)

    async def _follow_settings(self) -> None:
        with suppress(RecollectError):  # `_serve` ends with it
            await self.runner.opened()
            self.apply_theme()

    def _told(self, event: TerminalEvent) -> None:
        self.chat.show_event(event)

    def action_leave(self) -> None:
        self.runner.close()
