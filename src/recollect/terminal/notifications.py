"""Tells a user who looks elsewhere that the program waits for an answer or has finished, and shows
in the terminal's title what it is about.

Only while the terminal has lost the focus, and never after short work. A title comes from a session
and so from anywhere: it is one line without control characters.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from recollect.display.display_text import one_line, truncate
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    PromptEnded,
    PromptStarted,
    QueueChanged,
    SessionOpened,
    TerminalEvent,
)

if TYPE_CHECKING:
    from recollect.terminal.terminal_app import TerminalApp

LONG_SECONDS = 10.0  # work that took less is not worth a sound
MAX_TITLE = 60
PUSH_TITLE, POP_TITLE = "\x1b[22;0t", "\x1b[23;0t"  # terminals keep a stack of titles


def title_sequence(title: str, *, busy: bool) -> str:
    shown = truncate(one_line(title), MAX_TITLE) or "recollect"
    return f"\x1b]2;{'● ' if busy else ''}{shown}\x07"


def notice_sequence(text: str) -> str:
    """OSC 9, which terminals show as a notification of the desktop."""
    # a semicolon after a number would make it another command of some terminals
    return f"\x1b]9;{truncate(one_line(text), MAX_TITLE).replace(';', ',')}\x07"


class Notifications:
    def __init__(self, app: TerminalApp, runner: SessionRunner) -> None:
        self._app, self._runner = app, runner
        self.focused = True
        self.sent: list[str] = []  # what has rung
        self._since = 0.0
        self._title, self._began = "", False

    def add(self, event: TerminalEvent) -> None:
        match event:
            case PromptStarted():
                self._since = time.monotonic()
            case ApprovalAsked(request=request):
                self._notify(f"recollect asks about {request.call.name}")
            case PromptEnded(interrupted=False):
                if time.monotonic() - self._since > LONG_SECONDS and not self._runner.waiting:
                    self._notify("recollect has finished")
        if isinstance(event, PromptStarted | PromptEnded | SessionOpened | QueueChanged):
            self.show_title(busy=self._runner.busy and not isinstance(event, PromptEnded))

    def show_title(self, title: str | None = None, *, busy: bool) -> None:
        if title is not None:
            self._title = title
        if not self._began:
            self._began = True
            self._write(PUSH_TITLE)
        self._write(title_sequence(self._title, busy=busy))

    def end(self) -> None:
        if self._began:
            self._write(POP_TITLE)

    def _notify(self, text: str) -> None:
        how = self._runner.runtime.settings.terminal.notify
        if self.focused or how == "off":
            return
        for sequence in ("\x07", notice_sequence(text))[: 2 if how == "auto" else 1]:
            self.sent.append(sequence)
            self._write(sequence)

    def _write(self, sequence: str) -> None:
        self._app.write_sequence(sequence)
