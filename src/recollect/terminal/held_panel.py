"""Says that the session is open in another terminal, and asks what to do.

Watch it, go on in a copy, begin a new one or leave; and when the other has left, take it over.
"""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widgets import Static

from recollect.runtime.session_claims import SessionHolder
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.terminal_events import SessionHeld, SessionReleased
from recollect.terminal.watching import describe_holder

LOW = 12  # lines of a terminal
_CHOICES = "f fork · n new · q leave"
_RELEASED = "the other terminal has left this session: Enter, or a prompt, takes over"


class HeldPanel(Static, can_focus=True):
    DEFAULT_CSS = """
    HeldPanel { height: auto; border: round $warning; padding: 0 1; }
    HeldPanel.watching { border: none; color: $text-warning; }
    HeldPanel:focus { border: round $accent; }
    """

    def __init__(self, runner: SessionRunner) -> None:
        super().__init__("", markup=False)
        self._runner = runner
        self._said, self.has_left = "", False

    def show_event(self, event: SessionHeld | SessionReleased) -> None:
        if isinstance(event, SessionHeld):
            self._show_holder(event.holder)
        else:
            self._show_released()

    def _show_holder(self, holder: SessionHolder) -> None:
        self._said = describe_holder(holder)
        self.remove_class("released")
        self._show()
        if not self.has_class("watching"):
            self._take_focus()

    def _show_released(self) -> None:
        self._said = _RELEASED
        self.add_class("released")
        self._show()
        self._take_focus()

    def leave(self) -> None:
        """Another session is shown."""
        self.has_left = True
        if self.has_focus:
            self.screen.query_one(PromptInput).focus()
        self.remove()

    def _take_focus(self) -> None:
        """Unless the user is typing."""
        if not any(prompt.text for prompt in self.screen.query(PromptInput)):
            self.focus()

    def _show(self) -> None:
        if self.has_class("watching") and not self.has_class("released"):
            self.update(f"watching: {self._said} · Tab: {_CHOICES}")
            return
        choices = _CHOICES if self.has_class("released") else f"w watch · {_CHOICES}"
        # of a low terminal, the first line is what is seen
        lines = [self._said, choices]
        self.update("\n".join(lines[::-1] if self.app.size.height < LOW else lines))

    def on_key(self, event: events.Key) -> None:
        actions: dict[str, Callable[[], None]] = {
            "w": self._watch,
            "f": lambda: self._open(fork=True),
            "n": self._open,
            "q": self._runner.close,
        }
        if self._runner.is_released:
            actions["enter"] = self._runner.take_over
        if (action := actions.get(event.key)) is not None:
            event.stop().prevent_default()
            action()

    def _watch(self) -> None:
        self.add_class("watching")
        self._show()
        self.screen.query_one(PromptInput).focus()

    def _open(self, *, fork: bool = False) -> None:
        session = self._runner.session
        self._runner.open(session.id if fork and session is not None else None, fork=fork)
