"""One line above the prompt for what matters only now; the next key takes it away."""

from __future__ import annotations

from textual.widgets import Static

from recollect.display.display_text import one_line


class HintLine(Static):
    DEFAULT_CSS = """
    HintLine { height: auto; max-height: 3; padding: 0 1; color: $text-warning; display: none; }
    """

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self.text = ""

    def say(self, text: str) -> None:
        self.text = one_line(text)
        self.update(self.text)
        self.display = bool(text)
