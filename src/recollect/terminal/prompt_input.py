"""Where the user types: several lines, sent with Enter."""

from __future__ import annotations

from textual import events
from textual.message import Message as TextualMessage
from textual.widgets import TextArea


class PromptInput(TextArea):
    DEFAULT_CSS = """
    PromptInput { height: auto; max-height: 10; border: round $primary; padding: 0 1; }
    """

    class Submitted(TextualMessage):
        """The user sent what was typed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self) -> None:
        super().__init__(
            tab_behavior="focus", compact=True, highlight_cursor_line=False,
            placeholder="Ask, or / for commands, @ for files, ! for a shell command",
        )  # fmt: skip

    async def on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.prevent_default().stop()
            if self.text.strip():
                self.post_message(self.Submitted(self.text))
                self.clear()
        elif event.key in ("shift+enter", "ctrl+j", "alt+enter"):
            event.prevent_default().stop()
            self.insert("\n")
