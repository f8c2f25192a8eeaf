"""Where a JSON object ends in text that is still arriving and may be broken.

The scanner knows strings and brackets, so braces and fences inside a string mean nothing. Besides
its own last bracket, a broken object ends at the closing fence or tag around it, or where the next
call begins on a line. A closing fence or tag inside an open string is remembered (`fallback`): if
the string never ends, it was the end. Every character is read once.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, TypeAlias

from recollect.codecs.text_tools.call_starts import BLANKS, call_on_line

# whole     its own last bracket
# closed    the fence or tag around it was closed first
# stopped   the next call began first
# cut       the text is over
ObjectEnding: TypeAlias = Literal["whole", "closed", "stopped", "cut"]
CUT: ObjectEnding = "cut"
_TAG = r"<(?=/tool_call>|[/a-z_]{0,11}\Z)"
_OUTSIDE = re.compile(r"[\"\n]|[{\[]+|[}\]]+|" + _TAG)
_STRING = re.compile(r"[\"\n]|(?:\\.)+|\\\Z|" + _TAG, re.DOTALL)
_BROKEN = re.compile(r"\n|" + _TAG)
_FENCE_LINE = re.compile(r"[ \t]{0,40}(`{3,64}|~{3,64})[ \t\r]{0,40}(?:\n|\Z)")
_FENCE_LINE_BEGUN = re.compile(r"[ \t]{0,40}(?:`{0,64}|~{0,64})[ \t\r]{0,40}")
_GOES_ON = frozenset(",[:{")  # after these a line that begins with an object is inside


class JsonObjectScanner:
    """Reads one object. `fence` closes it; with `tagged`, a tag does."""

    def __init__(self, fence: str, names: Collection[str], *, tagged: bool = False) -> None:
        self._fence, self._names, self._tagged = fence, names, tagged
        self._pieces: list[str] = []
        self._depth = self._depth_before = 0
        self._last = ""  # the last character except white space
        self._broken = False
        self.in_string = False
        self.size = self.deepest = 0
        self.fallback = -1

    def text(self) -> str:
        return "".join(self._pieces)

    def continue_broken(self) -> None:
        """It ended but is not JSON: from now on only the fence or tag around it can end it."""
        self._broken = True

    def read(self, text: str, at: int, *, final: bool) -> tuple[ObjectEnding | None, int]:
        """How it ended, if it did, and where reading stopped."""
        begun = at
        while True:
            pattern = _BROKEN if self._broken else _STRING if self.in_string else _OUTSIDE
            match = pattern.search(text, at)
            if match is None:
                self._take(text[begun:])
                return (CUT if final else None), len(text)
            start, end = match.span()
            first = text[start]
            if first == "\n":
                self._take(text[begun:start])
                begun = start
                ending = self._at_line(text, end, final=final)
                if ending is None:
                    return None, begun
                if ending != CUT:
                    self._take("\n")
                    return ending, end
            elif first == "<":
                ending = self._at_tag(text, start, begun, final=final)
                if ending is not CUT:
                    self._take(text[begun:start])
                    return ending, start
            elif first == "\\" and end - start == 1 and not final:
                self._take(text[begun:start])
                return None, start
            elif self._whole(first, end - start):
                end = start + self._depth_before
                self._take(text[begun:end])
                return "whole", end
            at = end

    def _whole(self, first: str, count: int) -> bool:
        """Whether these brackets, or this mark, end the object."""
        if first == '"':
            self.in_string = not self.in_string
        elif first in "{[":
            self._depth += count
            self.deepest = max(self.deepest, self._depth)
        elif first in "}]":
            self._depth_before = self._depth
            self._depth -= count
            return self._depth <= 0
        return False

    def _take(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self.size += len(text)
            stripped = text.rstrip()
            if stripped:
                self._last = stripped[-1]

    def _at_line(self, text: str, at: int, *, final: bool) -> ObjectEnding | None:
        """How the object ends at the start of a line: `CUT` if it does not, None if undecided."""
        lead = BLANKS.match(text, at, at + 40)
        first = text[lead.end() : lead.end() + 1] if lead else ""
        if first and first not in "`~<{T":
            return CUT
        fence = self._fence_line(text, at, final=final)
        if fence is None:
            return None
        if fence:
            if not self.in_string or self._broken:
                return "closed"
            if self.fallback < 0:
                self.fallback = self.size + 1
            return CUT
        if not self.in_string and not self._broken and self._last in _GOES_ON:
            return CUT
        call = call_on_line(text, at, self._names, final=final)
        return None if call is None else "stopped" if call else CUT

    def _fence_line(self, text: str, at: int, *, final: bool) -> bool | None:
        if not self._fence:
            return False
        found = _FENCE_LINE.match(text, at)
        ended = found is not None and (text[found.end() - 1] == "\n" or final)
        if found and ended:
            return found[1].startswith(self._fence)
        return None if not final and _FENCE_LINE_BEGUN.fullmatch(text, at) else False

    def _at_tag(self, text: str, start: int, begun: int, *, final: bool) -> ObjectEnding | None:
        if not self._tagged:
            return CUT
        if not text.startswith("</tool_call>", start):
            partial = not final and "</tool_call>".startswith(text[start:])
            return None if partial else CUT
        if not self.in_string or self._broken:
            return "closed"
        if self.fallback < 0:
            self.fallback = self.size + start - begun
        return CUT
