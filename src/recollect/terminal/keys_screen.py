"""All keys and commands, made from the bindings themselves, so that none can be missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from recollect.terminal.approval_panel import ApprovalPanel
from recollect.terminal.chat_screen import ChatScreen
from recollect.terminal.palette import Palette, read_palette
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.screen_lines import KeyLine, TitleLine
from recollect.terminal.slash_commands import COMMANDS
from recollect.terminal.transcript_view import TranscriptView

NARROW = 40  # columns: what a key does stands below it
_NAMES = {
    "enter": "Enter",
    "escape": "Esc",
    "backspace": "Backspace",
    "pageup": "PageUp",
    "pagedown": "PageDown",
    "up": "Up",
    "down": "Down",
    "tab": "Tab",
}
EDITING = (
    ("Ctrl-Left, Ctrl-Right", "word back, word forward"),
    ("Home, End", "beginning, end of the line"),
    ("Ctrl-W, Ctrl-U, Ctrl-K", "delete the word before, to the beginning, to the end of the line"),
    ("Ctrl-Z, Ctrl-Y", "undo, redo"),
    ("Tab, Enter, Esc", "in the list of what can stand here: take it, take it, close the list"),
)
TYPED = (
    ("/", "a command; // for a prompt that begins with a slash"),
    ("@", "a file or a folder of the project"),
    ("!", "a shell command of your own; its output goes into the context"),
)


def key_name(key: str) -> str:
    return "-".join(_NAMES.get(part, part.capitalize()) for part in key.split("+"))


def binding_rows(bindings: Iterable[BindingType]) -> Iterator[tuple[str, str]]:
    for one in bindings:
        binding = one if isinstance(one, Binding) else Binding(*one)
        names = ", ".join(key_name(key) for key in binding.key.split(","))
        yield names, binding.description


def key_sections(app: type[App[int]]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each key once, in the section of what it is for."""
    sections: list[tuple[str, list[tuple[str, str]]]] = []
    seen: set[tuple[str, str]] = set()
    for title, source in (
        ("The prompt", PromptInput.BINDINGS),
        ("Everywhere", (*ChatScreen.BINDINGS, *TranscriptView.BINDINGS, *app.BINDINGS)),
        ("While a call asks", ApprovalPanel.BINDINGS),
    ):
        rows = [row for row in binding_rows(source) if row not in seen]
        seen.update(rows)
        sections.append((title, rows))
    sections.insert(1, ("Editing", [*EDITING]))
    sections.append(("At the beginning of a prompt, or of a word", [*TYPED]))
    commands = []
    for one in COMMANDS:
        also = f" (/{', /'.join(one.aliases)})" if one.aliases else ""
        commands.append((f"/{one.name} {one.arguments}".strip(), one.help + also))
    sections.append(("Commands", commands))
    return sections


def keys_text(
    sections: list[tuple[str, list[tuple[str, str]]]], width: int, palette: Palette
) -> Text:
    text = Text()
    wide = 2 if width < NARROW else min(34, width // 3)
    for title, rows in sections:
        text.append(f"{title}\n", palette.heading)
        for keys, said in rows:
            gap = " " * (wide - len(keys)) if len(keys) < wide else "\n" + " " * (wide + 2)
            text.append(f"  {keys}", palette.tool)
            below = "\n" + " " * (wide + 2)
            text.append(f"{gap}{below.join(wrap(said, max(10, width - wide - 2)))}\n")
        text.append("\n")
    return text


class KeysScreen(Screen[None]):
    DEFAULT_CSS = """
    KeysScreen #list { padding: 0 1; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f1", "leave", "close", show=False),
    ]

    def compose(self) -> ComposeResult:
        yield TitleLine("Keys and commands")
        with VerticalScroll():
            yield Static("", id="list", markup=False)
        yield KeyLine("↑ ↓ scroll", "Esc close")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()
        self.on_resize()

    def on_resize(self) -> None:
        sections = key_sections(type(self.app))
        text = keys_text(sections, self.app.size.width - 4, read_palette(self))
        self.query_one("#list", Static).update(text)

    def action_leave(self) -> None:
        self.dismiss()
