"""Whether a place in a model's text is inside an argument of a call that is written there.

Tags in an argument are part of a file or a command, not of the model's thinking. Inside are the
strings of a JSON object that begins like a call, and the values between `<parameter=…>` tags. The
text is read only when somebody asks, and each character once.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

_Place: TypeAlias = Literal["prose", "object", "string", "parameter"]
_BEGINS = re.compile(
    r"\{\s{0,64}[\"'](?:tool_call|name)[\"']\s{0,64}:|\bARGS:\s{0,64}\{|<tool_call>\s{0,64}\{"
    r"|<parameter=[^>\n]{1,100}>"
)
_IN_OBJECT = re.compile(r"[\"{}\[\]]|</tool_call>")
_INSIDE = r"[^\"\\<]*+(?:\\.[^\"\\<]*+)*+"
_STRING_END = re.compile(
    rf"{_INSIDE}(?:<(?!/tool_call>){_INSIDE})*\\?(\"|</tool_call>|\Z)", re.DOTALL
)


class ArgumentText:
    """Follows a text. Each piece ends where something else, such as a tag, begins."""

    def __init__(self) -> None:
        self._new: list[str] = []
        self._place: _Place = "prose"
        self._depth = 0

    def add(self, text: str) -> None:
        self._new.append(text)

    def reset(self) -> None:
        """Whatever was open is over: a fence was closed, or the model went on with other text."""
        self._new = []
        self._place = "prose"

    def is_inside(self) -> bool:
        """Whether the text so far ends inside an argument, and not at the start of a line of JSON.

        JSON has no line ends in its strings: a tag that begins a line there is most likely a
        tag."""
        text, self._new = "".join(self._new), []
        at = 0
        while at < len(text):
            at = self._read(text, at)
        if self._place == "string":
            return bool(text.rpartition("\n")[2].strip())
        return self._place == "parameter"

    def _read(self, text: str, at: int) -> int:
        """Read up to the next change of place."""
        if self._place == "prose":
            found = _BEGINS.search(text, at)
            if found:
                self._place = "parameter" if found[0].startswith("<parameter") else "object"
                self._depth = 1
            return found.end() if found else len(text)
        if self._place == "parameter":
            end = text.find("</parameter>", at)
            if end >= 0:
                self._place = "prose"
            return end if end >= 0 else len(text)
        if self._place == "string":
            found = _STRING_END.match(text, at)
            assert found
            if found[1]:
                self._place = "object" if found[1] == '"' else "prose"
            return found.end()
        found = _IN_OBJECT.search(text, at)
        if found:
            self._see(found[0])
        return found.end() if found else len(text)

    def _see(self, mark: str) -> None:
        if mark == '"':
            self._place = "string"
            return
        self._depth += 1 if mark in "{[" else -1
        if mark == "</tool_call>" or self._depth <= 0:
            self._place = "prose"
