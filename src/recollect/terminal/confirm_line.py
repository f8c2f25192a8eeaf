"""A question that is answered in its line: Enter or `y` is yes, Esc or `n` is no."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widgets import Static

from recollect.display.display_text import sanitize


class ConfirmLine(Static, can_focus=True):
    """Hidden until `ask` or `tell`. `done` comes before the answer, to put the focus back."""

    DEFAULT_CSS = """
    ConfirmLine { height: auto; max-height: 4; padding: 0 1; color: $text-muted; display: none; }
    ConfirmLine.shown { display: block; }
    ConfirmLine:focus { color: $text-warning; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._yes: Callable[[], None] | None = None
        self._done: Callable[[], None] = lambda: None

    @property
    def is_asking(self) -> bool:
        return self._yes is not None

    def ask(self, question: str, yes: Callable[[], None], done: Callable[[], None]) -> None:
        self.tell(question)
        self._yes, self._done = yes, done
        self.focus()

    def tell(self, text: str) -> None:
        self._yes = None
        self.update(sanitize(text))
        self.set_class(bool(text), "shown")

    def on_key(self, event: events.Key) -> None:
        if self._yes is None:
            return
        event.stop().prevent_default()
        if event.key in ("enter", "y"):
            yes = self._yes
            self.tell("")
            self._done()
            yes()
        elif event.key in ("escape", "n", "q"):
            self.tell("")
            self._done()
