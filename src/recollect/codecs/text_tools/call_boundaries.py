"""Where a call may begin, and where its JSON object ends, in text that is still arriving.

Each function decides from a bounded stretch of text. It returns None if the text ends too early to
decide and more may come, so no result depends on the chunking. False (or an empty value) means that
no call begins here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
MaybeStart: TypeAlias = T | Literal[""] | None

BLANKS = re.compile(r"[ \t]*")
SPACES = re.compile(r"[ \t\r\n]*")
CLOSING = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t\r]*\n?")
WIDTH = 64  # characters of white space between two parts
LOOK = 200  # characters of a line that decide whether a call begins on it
_FENCE = re.compile(r"(`{3,50}|~{3,50})([^`\n]{0,100})\n")
_FENCE_BEGUN = re.compile(r"(?:`{1,50}|~{1,50})[^`\n]{0,100}")
_KEYS = ("tool_call", "name", "arguments", "parameters")
_OBJECT = re.compile(
    r"\{[ \t\r\n]{0,64}[\"'](?:(tool_call)[\"']|([a-z_]{1,12})[\"'][ \t\r\n]{0,64}:)"
)
_OBJECT_BEGUN = re.compile(r"\{[ \t\r\n]{0,64}(?:[\"']([a-z_]{0,12})(?:[\"'][ \t\r\n]{0,64})?)?")
_NAMED = re.compile(r"\{[ \t\r\n]{0,64}\"name\"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}\"([^\"\n]{1,64})\"")
_TOOL_NAME = re.compile(r"[\w.:/-]{1,100}")
_FUNCTION = re.compile(r"<function=[ \t\"']{0,8}([^>\s<\"']{1,100})[ \t\"']{0,8}>")

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
_VALUE_END = re.compile(r"[}\]\"0-9]")  # only after these the next call may begin on a line


def begins(text: str, at: int, word: str, *, final: bool) -> bool | None:
    """Whether the text continues with this word."""
    if text.startswith(word, at):
        return True
    rest = len(text) - at
    return None if not final and rest < len(word) and word.startswith(text[at:]) else False


def fence_at(text: str, at: int, *, final: bool) -> MaybeStart[tuple[str, str, int]]:
    """A fence that opens here: its marks, its language, where its content begins."""
    found = _FENCE.match(text, at)
    if found:
        return found[1], found[2].strip().lower(), found.end()
    waiting = not final and _FENCE_BEGUN.fullmatch(text, at)
    return None if waiting else ""


def object_at(text: str, at: int, *, final: bool) -> MaybeStart[str]:
    """`call` for an object that begins with "tool_call", `bare` for one with a name."""
    found = _OBJECT.match(text, at)
    if found:
        return "call" if found[1] else "bare" if found[2] in _KEYS else ""
    begun = None if final else _OBJECT_BEGUN.fullmatch(text, at)
    if begun is None:
        return ""
    start = begun[1] or ""
    return None if any(key.startswith(start) for key in _KEYS) else ""


def function_at(text: str, at: int, *, final: bool) -> MaybeStart[tuple[str, int]]:
    """The function that is named here, and where its parameters begin."""
    word = begins(text, at, "<function=", final=final)
    if not word:
        return None if word is None else ""
    found = _FUNCTION.match(text, at)
    if found:
        return found[1], found.end()
    stretch = text[at : at + 130]
    return None if not final and len(stretch) < 130 and ">" not in stretch else ""


class ToolLines(NamedTuple):
    """`TOOL: name` and, on the next line, `ARGS:`."""

    name: str
    end: int  # where the arguments begin, after `ARGS:` and blanks


def tool_lines_at(text: str, at: int, *, final: bool) -> MaybeStart[ToolLines]:
    word = begins(text, at, "TOOL:", final=final)
    if not word:
        return None if word is None else ""
    end = text.find("\n", at, at + 120)
    if end < 0:
        return None if not final and len(text) - at < 120 else ""
    name = text[at + 5 : end].strip()
    if not _TOOL_NAME.fullmatch(name):
        return ""
    start = past_spaces(text, end)
    word = begins(text, start, "ARGS:", final=final)
    if not word:
        return None if word is None else ""
    start = past_spaces(text, start + 5)
    return None if start == len(text) and not final else ToolLines(name, start)


def call_on_line(text: str, at: int, names: Collection[str], *, final: bool) -> bool | None:
    """Whether the line that begins here can only be the next call."""
    lead = BLANKS.match(text, at, at + 40)
    start = lead.end() if lead else at
    first = text[start : start + 1]
    if not first:
        return False if final else None
    if first == "<":
        tag = begins(text, start, "<tool_call>", final=final)
        return tag if tag is not False else begins(text, start, "<function=", final=final)
    if first == "T":
        lines = tool_lines_at(text, start, final=final)
        return None if lines is None else isinstance(lines, ToolLines) and lines.name in names
    if first != "{":
        return False
    kind = object_at(text, start, final=final)
    if kind != "bare":
        return None if kind is None else kind == "call"
    if not final and len(text) - start < LOOK:
        return None
    named = _NAMED.match(text, start)
    return named is not None and named[1] in names


def is_call_object(text: str) -> bool:
    """Whether this object says of itself that it is a call."""
    return object_at(text, 0, final=True) == "call"


def past_spaces(text: str, at: int) -> int:
    found = SPACES.match(text, at, at + WIDTH)
    return found.end() if found else at


class JsonObjectScanner:
    """Reads one object, which may be broken. `fence` closes it; with `tagged`, a tag does.

    It knows strings and brackets, so braces and fences inside a string mean nothing. Besides its
    own last bracket, a broken object ends at the closing fence or tag around it, or where the next
    call begins on a line after a complete value. A closing fence or tag inside an open string, but
    right after a closing brace, is remembered (`fallback`): if the string never ends, it was the
    end. Without it, what follows cannot be told from the string, so nothing of it is a call. Every
    character is read once."""

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
            if not self.in_string and not self._broken:
                return "closed"
            if self._last != "}":
                return CUT
            if self._broken:
                return "closed"
            if self.fallback < 0:
                self.fallback = self.size + 1
            return CUT
        if self._broken or (self.in_string and self.fallback < 0):
            return CUT
        if not self.in_string and not _VALUE_END.match(self._last):
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
        if not self.in_string and not self._broken:
            return "closed"
        before = start - 1
        while before >= begun and text[before].isspace():
            before -= 1
        if (text[before] if before >= begun else self._last) != "}":
            return CUT
        if self._broken:
            return "closed"
        if self.fallback < 0:
            self.fallback = self.size + start - begun
        return CUT
