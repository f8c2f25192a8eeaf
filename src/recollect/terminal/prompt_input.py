"""Where the user types: several lines, sent with Enter.

Enter sends; Shift+Enter, Alt+Enter, Ctrl+J or a backslash at the end begin a new line. Up and Down
go through earlier prompts from the first and the last line on. Long pastes stand as one line.
Editing keys are those of Textual's text area.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from textual import events
from textual.binding import Binding
from textual.message import Message as TextualMessage
from textual.widgets import TextArea

from recollect.terminal.prompt_attachments import PastedTexts, PasteRefused, media_files
from recollect.terminal.prompt_history import PromptHistory

MAX_LAID_OUT = 20_000  # characters
MAX_OPENED = 300_000  # characters; laying out more takes seconds
NEW_LINE_KEYS = ("shift+enter", "ctrl+j", "alt+enter")


class Chooser(Protocol):
    """Takes keys while it offers something."""

    @property
    def is_open(self) -> bool: ...

    def take_key(self, key: str) -> bool:
        """Whether the key was for it."""


class PromptInput(TextArea):
    DEFAULT_CSS = """
    PromptInput {
        height: auto; min-height: 3; max-height: 33vh; border: round $primary; padding: 0 1;
        background: transparent; scrollbar-size-vertical: 1;
    }
    PromptInput:focus { border: round $primary; background: transparent; }
    """
    BINDINGS = [
        Binding("enter", "send", "send what is typed", show=False),
        Binding("shift+enter,alt+enter,ctrl+j", "new_line", "new line; also \\ and Enter"),
        Binding("up", "go_up", "line above, earlier prompt, or take back what waits"),
        Binding("down", "go_down", "line below, or later prompt"),
        Binding("ctrl+r", "search_history", "search earlier prompts"),
        Binding("ctrl+g", "open_editor", "write in $VISUAL or $EDITOR"),
        Binding("ctrl+v", "paste_image", "attach the image in the clipboard, else paste"),
        Binding("f2", "open_paste", "open the pasted text at the cursor"),
        Binding("backspace", "delete_back", "delete; at the beginning, the last attachment"),
        Binding("ctrl+c", "screen.clear_or_leave", "interrupt, clear, or twice: leave"),
        Binding("ctrl+d", "delete_or_leave", "delete, or leave if nothing is typed"),
        Binding("shift+tab", "screen.next_mode", "next permission mode"),
        Binding("pageup", "screen.scroll_page(-1)", "scroll the conversation up"),
        Binding("pagedown", "screen.scroll_page(1)", "scroll the conversation down"),
    ]

    class Submitted(TextualMessage):
        """The user sent what was typed."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Asked(TextualMessage):
        """The user wants something that the prompt cannot do by itself."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    class MediaPasted(TextualMessage):
        """Paths of images or documents were pasted or dropped."""

        def __init__(self, files: tuple[Path, ...]) -> None:
            super().__init__()
            self.files = files

    class HistoryWanted(TextualMessage):
        """There is nothing older yet; more may be in the store."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            tab_behavior="focus", highlight_cursor_line=False,
            placeholder="Ask, or / for commands, @ for files, ! for a shell command",
        )  # fmt: skip
        self.earlier, self.pastes = PromptHistory(), PastedTexts()
        self.folder = folder
        self.chooser: Chooser | None = None
        self.typed_at = 0.0  # when a key was pressed last

    # --- keys ------------------------------------------------------------------------------------

    async def on_key(self, event: events.Key) -> None:
        self.typed_at = time.monotonic()
        taken = self.chooser is not None and self.chooser.is_open
        if taken and self.chooser is not None and self.chooser.take_key(event.key):
            event.prevent_default().stop()
        elif event.key == "enter":
            event.prevent_default().stop()
            self.action_send()
        elif event.key in NEW_LINE_KEYS:
            event.prevent_default().stop()
            self.action_new_line()
        else:
            await self._run_binding(event)

    async def _run_binding(self, event: events.Key) -> None:
        """At once: Textual lets a key go up to the app before it looks at bindings, and what is
        typed meanwhile would overtake it."""
        for binding in self._bindings.key_to_bindings.get(event.key, ())[:1]:
            event.prevent_default().stop()
            await self.run_action(binding.action)

    def action_new_line(self) -> None:
        self.insert("\n")

    def action_send(self) -> None:
        row, column = self.cursor_location
        line = self.document.get_line(row)
        if column == len(line) and line.endswith("\\"):
            self.replace("\n", (row, column - 1), (row, column))
            return
        if not self.text.strip():
            self.post_message(self.Asked("release"))
            return
        text = self.pastes.expand(self.text)
        self.finish()  # at once: what is typed from now on is the next prompt
        self.post_message(self.Submitted(text))

    def finish(self) -> None:
        """Empty the field; Up brings back what stood there."""
        self.earlier.add(self.pastes.expand(self.text))
        self.pastes.clear()
        self.clear()

    @property
    def unsent(self) -> str:
        """What is typed, in full."""
        return self.pastes.expand(self.text).strip()

    def show_text(self, text: str) -> None:
        """Put a text in place of what is typed, as an edit that can be undone; a very long one
        as one line, because laying it out would take seconds."""
        shown = self.pastes.add(text) if len(text) > MAX_LAID_OUT else text
        self.replace(shown, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def action_delete_or_leave(self) -> None:
        if self.text:
            self.action_delete_right()
        else:
            self.post_message(self.Asked("leave"))

    def action_delete_back(self) -> None:
        row, column = self.cursor_location
        if self.selection.is_empty and (row, column) == (0, 0):
            self.post_message(self.Asked("drop attachment"))
            return
        found = self.pastes.chip_at(self.document.get_line(row), column)
        if found is not None and self.selection.is_empty and column == found[1]:
            self.delete((row, found[0]), (row, found[1]))
            return
        self.action_delete_left()

    def action_open_paste(self) -> None:
        row, column = self.cursor_location
        line = self.document.get_line(row)
        found = self.pastes.chip_at(line, column) or self.pastes.chip_at(line, len(line))
        if found is not None and len(found[2]) > MAX_OPENED:
            self.post_message(self.Asked("the text is too long to be shown here; Ctrl-G opens it"))
        elif found is not None:
            self.replace(found[2], (row, found[0]), (row, found[1]))

    def action_search_history(self) -> None:
        self.post_message(self.Asked("search history"))

    def action_open_editor(self) -> None:
        self.post_message(self.Asked("editor"))

    def action_paste_image(self) -> None:
        self.post_message(self.Asked("paste image"))

    # --- earlier prompts -------------------------------------------------------------------------

    def action_go_up(self) -> None:
        if not self.navigator.is_first_wrapped_line(self.cursor_location):
            self.action_cursor_up()
        elif not self.text:
            self.post_message(self.Asked("take back"))
        else:
            self.show_older()

    def show_older(self) -> None:
        if (older := self.earlier.older(self.text)) is not None:
            self.show_text(older)
            # where the next Up goes on to the prompt before, and typing adds to one of one line
            self.move_cursor((0, len(self.document.get_line(0))))
        if self.earlier.left < 10:
            self.post_message(self.HistoryWanted())

    def action_go_down(self) -> None:
        if not self.navigator.is_last_wrapped_line(self.cursor_location):
            self.action_cursor_down()
        elif (newer := self.earlier.newer(self.text)) is not None:
            self.show_text(newer)

    # --- pastes ----------------------------------------------------------------------------------

    async def on_paste(self, event: events.Paste) -> None:
        event.prevent_default().stop()
        self.typed_at = time.monotonic()
        self.take_paste(event.text)

    def take_paste(self, text: str) -> None:
        if files := media_files(text, self.folder):
            self.post_message(self.MediaPasted(files))
            return
        try:
            self.replace(self.pastes.add(text), *self.selection)
        except PasteRefused as refused:
            self.post_message(self.Asked(str(refused)))
            return
        self.move_cursor(self.selection.end)
