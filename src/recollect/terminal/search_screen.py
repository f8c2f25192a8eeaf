"""`/search`: what was found, with its passage; Enter shows the text, `o` goes there."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Static

from recollect.display.display_text import one_line, truncate
from recollect.display.entry_summary import describe_edit
from recollect.display.entry_text import message_text
from recollect.display.found_entries import SearchRow
from recollect.display.home_paths import abbreviate_paths
from recollect.entries import Message
from recollect.errors import RecollectError
from recollect.terminal.found_passage import passage_of
from recollect.terminal.row_list import Row, RowList
from recollect.terminal.screen_lines import KeyLine, TitleLine
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.text_screen import TextScreen

KEYS = ("Enter text", "o go there", "Esc close")


class SearchScreen(Screen[None]):
    DEFAULT_CSS = """
    SearchScreen #about { height: 1; padding: 0 1; color: $text-accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "Close"),
        ("q", "dismiss", "Close"),
        ("o", "open", "Go there"),
    ]

    def __init__(self, runner: SessionRunner, words: str, found: tuple[SearchRow, ...]) -> None:
        super().__init__()
        self.runner, self.words, self.found = runner, words, found

    def compose(self) -> ComposeResult:
        yield TitleLine(truncate(f"{len(self.found):,} found for: {one_line(self.words)}", 200))
        yield RowList(self._draw)
        yield Static("", id="about", markup=False)
        yield KeyLine(*KEYS)

    def on_mount(self) -> None:
        rows = self.query_one(RowList)
        rows.focus()
        rows.show(len(self.found))

    def _draw(self, row: int, width: int) -> Row:
        found = self.found[row]
        room = max(4, width - len(found.short) - 1)
        passage = abbreviate_paths(found.passage, str(self.runner.runtime.folders.cwd))
        return [(f"{found.short} ", "tool"), (truncate(passage, room), "plain")]

    @property
    def current(self) -> SearchRow:
        return self.found[self.query_one(RowList).cursor]

    @on(RowList.Moved)
    def _moved(self) -> None:
        self._say(self.current.about)

    def _say(self, text: str) -> None:
        self.query_one("#about", Static).update(truncate(one_line(text), max(10, self.size.width)))

    @on(RowList.Chosen)
    def _show(self) -> None:
        found = self.current
        body = found.hit.entry.body
        text = message_text(body) if isinstance(body, Message) else describe_edit(body)
        self.app.push_screen(TextScreen(f"{found.short} {found.about}", text))

    def action_open(self) -> None:
        try:
            self.runner.open_passage(passage_of(self.current.hit))
        except RecollectError as error:
            self._say(str(error))
            return
        self.dismiss()
