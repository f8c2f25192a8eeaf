"""Tells a user who looks elsewhere that the program waits for an answer or has finished, and shows
in the terminal's title what it is about.

Only while the user looks elsewhere, and never after short work. Where the terminal does not report
its focus, as tmux by default, a user who has not typed for a while looks elsewhere. A title comes
from a session and so from anywhere: it is one line without control characters.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from recollect.display.display_text import one_line, truncate
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    PromptEnded,
    PromptStarted,
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
        self.focused: bool | None = None  # None: the terminal has never said
        self.away_after = LONG_SECONDS  # without a key, where the focus is not known
        self.sent: list[str] = []  # what has rung
        self._since = 0.0
        self._title, self._busy = "", False
        self._shown = ""  # the sequence of the title that the terminal has

    def add(self, event: TerminalEvent) -> None:
        match event:
            case PromptStarted():
                self._since, self._busy = time.monotonic(), True
            case ApprovalAsked():
                self._ask(event)
            case PromptEnded(interrupted=interrupted):
                self._busy = False
                long = time.monotonic() - self._since > LONG_SECONDS
                if long and not interrupted and not self._runner.waiting:
                    self._notify("recollect has finished")
            case SessionOpened(session=None):
                self._title = ""
        if isinstance(event, PromptStarted | PromptEnded | SessionOpened):
            self.show_title(self._title)

    def show_title(self, title: str) -> None:
        """With a mark while a prompt runs."""
        self._title = title
        shown = title_sequence(title, busy=self._busy)
        if shown == self._shown:
            return
        if not self._shown:
            self._write(PUSH_TITLE)
        self._shown = shown
        self._write(shown)

    def end(self) -> None:
        if self._shown:
            self._write(POP_TITLE)

    def _ask(self, asked: ApprovalAsked) -> None:
        """Now or, where the focus is not known, when the user has not typed for a while."""
        if asked.answer.done() or self._notify(f"recollect asks about {asked.request.call.name}"):
            return
        if self.focused is None:
            self._app.set_timer(self.away_after, partial(self._ask, asked))

    def _is_away(self) -> bool:
        if self.focused is not None:
            return not self.focused
        return time.monotonic() - self._app.chat.prompt.input.typed_at > self.away_after

    def _notify(self, text: str) -> bool:
        """Whether the user was told, or does not want to be."""
        how = self._runner.runtime.settings.terminal.notify
        if how == "off":
            return True
        if not self._is_away():
            return False
        for sequence in ("\x07", notice_sequence(text))[: 2 if how == "auto" else 1]:
            self.sent.append(sequence)
            self._write(sequence)
        return True

    def _write(self, sequence: str) -> None:
        self._app.write_sequence(sequence)
