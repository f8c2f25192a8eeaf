"""Shows what going back would change, and asks with what: the conversation, files, or both."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.style import Style
from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Static

from recollect.display.display_text import one_line, sanitize
from recollect.display.rewind_points import describe_preview
from recollect.runtime.session_rewind import RewindPreview
from recollect.terminal.rewind_steps import RewindChoice
from recollect.terminal.row_browser import ROW_STYLES, RowPieces, WrappedLines

_CHOICES = {
    "conversation": RewindChoice("conversation"),
    "files": RewindChoice("files"),
    "both": RewindChoice("both"),
    "beside": RewindChoice("both", beside=True),
}


def style_lines(lines: Iterable[str]) -> RowPieces:
    """Lines of a preview, with differences in colour; safe to show."""
    return [(sanitize(line), _style(line)) for line in lines]


def _style(line: str) -> Style:
    if line.startswith("    "):
        found = {"+": ROW_STYLES.added, "-": ROW_STYLES.removed, "@": ROW_STYLES.tool}
        return found.get(line[4:5], ROW_STYLES.dim)
    return ROW_STYLES.warned if line.startswith("  conflict") else ROW_STYLES.strong


class RewindPreviewScreen(Screen[RewindChoice | None]):
    DEFAULT_CSS = """
    RewindPreviewScreen .line { height: auto; padding: 0 1; }
    RewindPreviewScreen #keys { color: $text-muted; max-height: 2; }
    RewindPreviewScreen #where { max-height: 2; }
    """
    BINDINGS = [
        ("escape,q", "leave", "Back"),
        ("c", "choose('conversation')", "Conversation"),
        ("f", "choose('files')", "Files"),
        ("b", "choose('both')", "Both"),
        ("o", "choose('beside')", "Both, old content beside"),
    ]

    def __init__(self, where: str, preview: RewindPreview, root: Path) -> None:
        super().__init__()
        self._where, self._preview, self._root = where, preview, root

    def compose(self) -> ComposeResult:
        yield Static(one_line(self._where), id="where", classes="line", markup=False)
        yield WrappedLines(style_lines(describe_preview(self._preview, self._root)))
        yield Static(self._keys(), id="keys", classes="line", markup=False)

    def _keys(self) -> str:
        keys = ["c conversation"]
        if self._preview.files:
            keys += ["f files", "b both"]
        if self._preview.conflicts:
            keys.append("o both, old content of conflicts beside")
        return " · ".join([*keys, "Esc back"])

    def on_mount(self) -> None:
        self.query_one(WrappedLines).focus()

    def action_choose(self, name: str) -> None:
        preview = self._preview
        if name == "conversation" or preview.files:
            self.dismiss(_CHOICES[name])

    def action_leave(self) -> None:
        self.dismiss(None)
