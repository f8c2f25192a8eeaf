"""The terminal program: one conversation, and screens over it.

A screen parses keys, asks for approval and shows events; `SessionRunner` does the work.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress

from textual import work
from textual.app import App
from textual.binding import Binding
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import AppBlur, AppFocus

from recollect.display.stored_session import StoredSession
from recollect.errors import RecollectError, StoreClosed
from recollect.terminal.chat_screen import ChatScreen
from recollect.terminal.keys_screen import KeysScreen
from recollect.terminal.load_ahead import load_ahead
from recollect.terminal.notifications import Notifications
from recollect.terminal.screen_commands import SCREEN_COMMANDS
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_driver import BoundedInputDriver, PasteTooLong
from recollect.terminal.terminal_events import PromptEnded, SessionOpened, TerminalEvent
from recollect.terminal.theme_choice import LIGHT_THEME, choose_theme
from recollect.text import format_size

LOW = 9  # lines of a terminal, below which there is no room for borders and keys


class TerminalApp(App[int]):
    TITLE = "recollect"
    ENABLE_COMMAND_PALETTE = False
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LOW, "-high")]
    CSS = """
    * {
        scrollbar-size-vertical: 1; scrollbar-color: $foreground 25%;
        scrollbar-background: $background; scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
    }
    Screen.-low PromptInput, Screen.-low PromptInput:focus {
        border: none; min-height: 1; max-height: 3;
    }
    Screen.-low KeyLine { display: none; }
    Screen.-low ApprovalPanel { border: none; }
    Screen.-low ApprovalPanel OptionList { max-height: 2; }
    Screen { overflow: hidden; }
    """
    BINDINGS = [
        Binding("ctrl+d", "leave", "leave, if nothing is typed"),
        Binding("f1", "show_keys", "all keys and commands"),
    ]

    def __init__(self, options: StartOptions) -> None:
        super().__init__()
        self.register_theme(LIGHT_THEME)
        self.runner = SessionRunner(options, self._told)
        self.stored = StoredSession(
            "recollect -r {}", options.store, persists=options.store_persists
        )
        self.notifications = Notifications(self, self.runner)
        self.chat = ChatScreen(self.runner, self.run_screen_command)

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        return BoundedInputDriver if found is LinuxDriver else found

    async def on_mount(self) -> None:
        # the terminal was closed, or the machine goes down: what has come of a reply is kept
        for number in (signal.SIGHUP, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.runner.close)
        await self.push_screen(self.chat)
        self.run_worker(self._serve(), name="session", exit_on_error=True)
        self.run_worker(self._follow_settings(), name="theme")
        self.run_worker(self._load_ahead(), name="load ahead")
        if name := self.runner.options.initial_screen:
            self.run_worker(self.run_screen_command(name, ""), name="initial screen")

    async def _serve(self) -> None:
        try:
            await self.runner.run()
        except RecollectError as error:
            self.exit(1, message=str(error))
            return
        finally:
            self.notifications.end()
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

    async def _load_ahead(self) -> None:
        with suppress(RecollectError):  # as above
            await self.runner.opened()
            await load_ahead()

    @property
    def unsent(self) -> str:
        """What is typed and was not sent."""
        return self.chat.prompt.input.unsent

    def _told(self, event: TerminalEvent) -> None:
        if isinstance(event, SessionOpened | PromptEnded):
            self._follow_session()
        self.chat.show_event(event)
        self.notifications.add(event)

    @work(exclusive=True, group="hint")
    async def _follow_session(self) -> None:
        """Know the command that comes back here: when the program has left, the store is closed."""
        session = self.runner.session
        if session is not None:
            with suppress(StoreClosed):
                title = (await session.info()).title
                self.notifications.show_title(title)
                await self.stored.follow(session.id, self.runner.runtime.store)

    def action_leave(self) -> None:
        self.runner.close()

    async def action_quit(self) -> None:
        self.action_leave()

    def action_show_keys(self) -> None:
        if not isinstance(self.screen, KeysScreen):
            self.push_screen(KeysScreen())

    def write_sequence(self, sequence: str) -> None:
        """To the terminal itself, as it is."""
        if self._driver is not None and self._running:
            self._driver.write(sequence)

    def on_paste_too_long(self, event: PasteTooLong) -> None:
        size = format_size(event.size)
        self.chat.prompt.hint.say(
            f"a paste of {size} is too long; save it as a file and mention that with @"
        )

    def on_app_blur(self, event: AppBlur) -> None:
        del event
        self.notifications.focused = False

    def on_app_focus(self, event: AppFocus) -> None:
        del event
        self.notifications.focused = True
