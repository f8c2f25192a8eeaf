"""A list of the session's prompts to choose one from: where a part begins or ends."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import ModalScreen

from recollect.display.display_text import pad, truncate
from recollect.display.entry_summary import summarize
from recollect.terminal.row_list import Row, RowList
from recollect.terminal.screen_lines import KeyLine, TitleLine
from recollect.view.curation import is_spoken
from recollect.view.view import View, ViewItem

NO_LIMIT = "(no limit)"


def prompts_of(view: View) -> tuple[tuple[ViewItem, int], ...]:
    """What the user said since the last compaction, each with the tokens from there to the end."""
    items = [item for item in view.items if item.place == "tail"]
    behind, found = 0, []
    for item in reversed(items):
        behind += item.tokens
        if is_spoken(item.message):
            found.append((item, behind))
    return tuple(reversed(found))


class PromptChoice(ModalScreen[str | None]):
    """The id of the entry that was chosen; empty: no limit; None: nothing was chosen."""

    DEFAULT_CSS = "PromptChoice { background: $background; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss(None)", "Close"),
        ("q", "dismiss(None)", "Close"),
    ]

    def __init__(self, title: str, view: View, chosen: str = "") -> None:
        super().__init__()
        self.heading, self.chosen = title, chosen
        self.prompts = prompts_of(view)

    def compose(self) -> ComposeResult:
        yield TitleLine(self.heading)
        yield RowList(self._draw)
        yield KeyLine("Enter choose", "Esc back")

    def on_mount(self) -> None:
        ids = [item.entry.id for item, _ in self.prompts]
        rows = self.query_one(RowList)
        rows.focus()
        at = ids.index(self.chosen) + 1 if self.chosen in ids else len(ids)
        rows.show(len(ids) + 1, at)

    def _draw(self, row: int, width: int) -> Row:
        if row == 0:
            return [(NO_LIMIT, "dim")]
        item, behind = self.prompts[row - 1]
        head = pad(f"{behind:,}", 9, right=True)
        return [(f"{head}  {truncate(summarize(item.message), max(4, width - 11))}", "plain")]

    @on(RowList.Chosen)
    def _choose(self, event: RowList.Chosen) -> None:
        self.dismiss(self.prompts[event.row - 1][0].entry.id if event.row else "")
