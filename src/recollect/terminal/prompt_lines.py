"""Typed lines as prompts: what a terminal marks as pasted stays one prompt, and so do lines that
end in a backslash with the line after them."""

from __future__ import annotations

from recollect.display.display_text import pluralize
from recollect.errors import BadInput

PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"
MAX_PROMPT = 16_000_000  # characters


class PromptLines:
    """Takes lines one by one; `is_open` while more of a prompt has to come."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size, self._pasting = 0, False

    @property
    def is_open(self) -> bool:
        return bool(self._lines)

    def clear(self) -> None:
        self._lines.clear()
        self._size, self._pasting = 0, False

    def add(self, line: str) -> str | None:
        """The prompt that this line completes; None if it goes on. `BadInput` if it is too long."""
        text = line.removesuffix("\r")
        pasted = self._pasting or PASTE_BEGIN in text
        if pasted:
            self._pasting = text.rfind(PASTE_BEGIN) > text.rfind(PASTE_END) or (
                self._pasting and PASTE_END not in text
            )
        text = text.replace(PASTE_BEGIN, "").replace(PASTE_END, "")
        self._size += len(text) + 1
        if self._size > MAX_PROMPT:
            size = self._size
            self.clear()
            raise BadInput(f"a prompt of over {size:,} characters is too long; attach a file")
        continues = not pasted and text.endswith("\\")
        self._lines.append(text[:-1] if continues else text)
        return None if continues or self._pasting else self.finish()

    def finish(self) -> str | None:
        """What there is so far, at the end of the input; None if there is nothing."""
        if not self._lines:
            return None
        prompt = "\n".join(self._lines)
        self.clear()
        return prompt

    def describe(self) -> str:
        return pluralize(len(self._lines), "line")
