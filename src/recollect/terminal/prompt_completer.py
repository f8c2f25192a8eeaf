"""Offers what can stand at the cursor while the user types, and puts in what is chosen."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import TypeAlias

from recollect.errors import RecollectError
from recollect.terminal.completion_list import CompletionList
from recollect.terminal.completion_sources import CompletionSources
from recollect.terminal.prompt_completion import Candidate, CompletionTarget, find_target
from recollect.terminal.prompt_input import PromptInput

StartWork: TypeAlias = Callable[[Callable[[], Coroutine[None, None, None]]], object]
LONGEST = 50_000  # characters of a prompt in which completions are looked for


class PromptCompleter:
    """Between the prompt, the list and the sources; `work` runs the newest question only."""

    def __init__(
        self,
        prompt: PromptInput,
        offered: CompletionList,
        sources: CompletionSources,
        work: StartWork,
    ) -> None:
        self._prompt, self._offered, self._sources, self._work = prompt, offered, sources, work
        self._dismissed: tuple[str, int] | None = None  # what the user closed
        self.target: CompletionTarget | None = None
        prompt.chooser = offered
        offered.on_choose, offered.on_close = self._put_in, self._dismiss
        offered.is_done = self._stands_there

    def look(self) -> None:
        """The text or the cursor has changed."""
        before = self._text_before()
        target = None if before is None else find_target(before)
        self.target = target
        if target is None:
            self._dismissed = None
            self._offered.show([])
        elif self._dismissed != (target.kind, target.start):
            self._dismissed = None
            self._work(partial(self._ask, target))

    def close(self) -> None:
        self.target = None
        self._offered.show([])

    async def _ask(self, target: CompletionTarget) -> None:
        try:
            found = await self._sources.candidates(target)
        except RecollectError:
            found = []  # a word that cannot be completed is no error
        if self.target == target:
            self._offered.show(found)

    def _text_before(self) -> str | None:
        """What stands before the cursor; None where nothing is offered."""
        prompt = self._prompt
        row, column = prompt.cursor_location
        if not prompt.selection.is_empty or len(prompt.text) > LONGEST:
            return None
        lines = [prompt.document.get_line(number) for number in range(row)]
        return "\n".join([*lines, prompt.document.get_line(row)[:column]])

    def _put_in(self, chosen: Candidate) -> None:
        target = self.target
        if target is None:
            return
        row, column = self._prompt.cursor_location
        before = self._text_before() or ""
        start = column - (len(before) - target.start)
        text = chosen.text
        if target.kind == "path" and chosen.ends:
            text += " "
        elif target.kind == "path" and text.endswith('"'):
            text = text[:-1]  # the path goes on inside the quotes
        self._offered.show([])
        self._prompt.replace(text, (row, max(0, start)), (row, column))
        self._prompt.move_cursor((row, max(0, start) + len(text)))
        if target.kind != "path":
            self._dismissed = (target.kind, target.start)

    def _dismiss(self) -> None:
        if self.target is not None:
            self._dismissed = (self.target.kind, self.target.start)

    def _stands_there(self, chosen: Candidate) -> bool:
        """Whether Enter has nothing to complete any more."""
        target = self.target
        if target is None:
            return True
        if target.kind == "argument" and not target.typed and not self._offered.moved:
            return True  # it may be left out
        typed = (self._text_before() or "")[target.start :]
        alias = target.kind == "command" and f"(/{target.typed})" in chosen.label
        return typed == chosen.text.strip() or alias
