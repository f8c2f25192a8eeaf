"""How the picker of sessions is laid out: the list, and the preview beside or below it.

Widgets are held, not looked up: a worker may end after the screen was closed.
"""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.screen import Screen
from textual.widgets import Input, Static

from recollect.terminal.confirm_line import ConfirmLine
from recollect.terminal.screen_lines import KeyLine
from recollect.terminal.session_list_view import SessionListView
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_view import TranscriptView

WIDE, TALL, TINY = 100, 16, 9  # columns and lines from which on, and below which


class PickerLayout(Screen[None]):
    DEFAULT_CSS = """
    PickerLayout #place {
        height: 1; padding: 0 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis;
    }
    PickerLayout Input.-textual-compact { padding: 0 1 !important; background: $boost; }
    PickerLayout TranscriptView { overflow-x: hidden; }
    PickerLayout #title { display: none; }
    PickerLayout #lists { layout: horizontal; height: 1fr; }
    PickerLayout #beside { width: 1fr; border-left: solid $primary; }
    PickerLayout #about {
        height: auto; max-height: 6; padding: 0 1; margin-bottom: 1; color: $text-muted;
    }
    PickerLayout #offer { height: auto; max-height: 2; padding: 0 1; color: $text-success; }
    PickerLayout.narrow #lists { layout: vertical; }
    PickerLayout.narrow #beside { height: 45%; border-left: none; border-top: solid $primary; }
    PickerLayout.low #beside { display: none; }
    PickerLayout.tiny #keys, PickerLayout.tiny #place, PickerLayout.tiny #offer { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.line = SessionListView(), ConfirmLine()
        self.place, self.about, self.offer = (
            Static("", id=name, markup=False) for name in ("place", "about", "offer")
        )
        self.keys = KeyLine()
        hint = "type to find, in titles and in what was said"
        self.find = Input(placeholder=hint, id="filter", compact=True, select_on_focus=False)
        self.title_input = Input(id="title", compact=True, select_on_focus=False)
        self.preview = TranscriptView(BlockList())
        self.preview.can_focus = False

    def compose(self) -> ComposeResult:
        yield self.place
        yield self.find
        with Container(id="lists"):
            yield self.rows
            with Vertical(id="beside"):
                yield self.about
                yield self.preview
        yield self.offer
        yield self.line
        yield self.title_input
        yield self.keys

    @property
    def words(self) -> str:
        return self.find.value.strip()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width < WIDE, "narrow")
        self.set_class(event.size.height < TALL, "low")
        self.set_class(event.size.height < TINY, "tiny")
