"""Ctrl+R: finds earlier prompts by their words while they are typed."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.widgets import Input

from recollect.display.display_text import one_line
from recollect.terminal.completion_list import CompletionList
from recollect.terminal.prompt_completion import Candidate
from recollect.terminal.prompt_history import PromptHistory


class PromptSearch(Input):
    DEFAULT_CSS = """
    PromptSearch, PromptSearch:focus { display: none; border: none; height: 1; padding: 0 1; }
    """

    def __init__(
        self, offered: CompletionList, history: PromptHistory, done: Callable[[str | None], None]
    ) -> None:
        super().__init__(placeholder="search earlier prompts; Enter takes one, Esc leaves")
        self._offered, self._history, self._done = offered, history, done

    def open(self) -> None:
        self.display = True
        self.value = ""
        self.focus()
        self.look()

    def look(self) -> None:
        """The words, or what there is to search, have changed."""
        if self.display:
            found = self._history.search(self.value)
            self._offered.show([Candidate(one, one_line(one[:500])) for one in found])

    async def on_key(self, event: events.Key) -> None:
        if event.key in ("escape", "ctrl+c"):
            self._close(None)
        elif event.key in ("enter", "tab"):
            chosen = self._offered.candidates
            self._close(chosen[self._offered.selected].text if chosen else None)
        elif event.key == "ctrl+r" and self._offered.is_open:
            self._offered.take_key("down")
        elif not (event.key in ("up", "down") and self._offered.is_open):
            return
        else:
            self._offered.take_key(event.key)
        event.prevent_default().stop()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.look()

    def _close(self, chosen: str | None) -> None:
        self._offered.show([])
        self.display = False
        self._done(chosen)
