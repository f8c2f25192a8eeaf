"""Shows what going back would change, and asks with what: the conversation, files, or both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from textual.app import ComposeResult
from textual.screen import Screen

from recollect.display.display_text import one_line, sanitize
from recollect.display.rewind_points import describe_preview
from recollect.runtime.session_rewind import RewindPreview
from recollect.terminal.palette import StyleName
from recollect.terminal.rewind_steps import RewindChoice
from recollect.terminal.screen_lines import KeyLine, TitleLine
from recollect.terminal.styled_lines import difference_style
from recollect.terminal.wrapped_lines import ReadLine, WrappedLines

_INDENT = "    "  # before the lines of a difference
_CHOICES = {
    "conversation": RewindChoice("conversation"),
    "files": RewindChoice("files"),
    "both": RewindChoice("both"),
    "beside": RewindChoice("both", beside=True),
}


def preview_lines(lines: Iterable[str]) -> Iterator[ReadLine]:
    """Lines of a preview, those of a difference in its colours; safe to show."""
    for line in lines:
        is_warning = line.startswith(("  conflict", "  not undone"))
        style: StyleName = "warned" if is_warning else "strong"
        is_difference = line.startswith(_INDENT)
        if is_difference:
            style = difference_style(line.removeprefix(_INDENT))
        yield ReadLine([(sanitize(line), style)], exact=is_difference)


class RewindPreviewScreen(Screen[RewindChoice | None]):
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
        yield TitleLine(one_line(self._where))
        yield WrappedLines(preview_lines(describe_preview(self._preview, self._root)))
        yield KeyLine(*self._keys())

    def _keys(self) -> list[str]:
        keys = ["c conversation"]
        if self._preview.files:
            keys += ["f files", "b both"]
        if self._preview.conflicts:
            keys.append("o both, old content beside what stays")
        return [*keys, "Esc back"]

    def on_mount(self) -> None:
        self.query_one(WrappedLines).focus()

    def action_choose(self, name: str) -> None:
        preview = self._preview
        if name == "conversation" or preview.files:
            self.dismiss(_CHOICES[name])

    def action_leave(self) -> None:
        self.dismiss(None)
