"""The prompts that wait while another runs, above the prompt; each can be taken back."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.message import Message as TextualMessage
from textual.widgets import Static

from recollect.display.display_text import one_line, pluralize, truncate
from recollect.terminal.terminal_events import QueueChanged

SHOWN = 5


class QueuePanel(Static):
    DEFAULT_CSS = """
    QueuePanel { height: auto; max-height: 7; padding: 0 1; color: $text-muted; display: none; }
    """

    class Removed(TextualMessage):
        """The user took a prompt away by its cross."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        super().__init__("", markup=False)

    def show(self, queue: QueueChanged) -> None:
        self.display = bool(queue.waiting)
        width = max(10, self.app.size.width - 2)
        lines = Text()
        if queue.held:
            count = pluralize(len(queue.waiting), "prompt")
            said = f"{count} held, nothing is lost: Enter sends, Up edits the last"
            lines.append(truncate(said, width), "bold")
            lines.append("\n")
        word = "queued" if queue.kept else "sending"
        for prompt in queue.waiting[:SHOWN]:
            sign = "!" if prompt.is_command else ""
            said = truncate(f"{word}: {sign}{one_line(prompt.text[:500])}", max(8, width - 4))
            lines.append(said)
            lines.append(" [x]", Style.from_meta({"@click": f"remove({prompt.number})"}))
            lines.append("\n")
        if (more := len(queue.waiting) - SHOWN) > 0:
            lines.append(f"and {more} more\n")
        lines.right_crop(1)
        self.update(lines)

    def action_remove(self, number: int) -> None:
        self.post_message(self.Removed(number))
