"""How a call may begin. Each function decides from a bounded stretch of text.

It returns None if the text ends too early to decide and more may come, so no result depends on
the chunking. False (or an empty value) means that no call begins here.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, TypeAlias, TypeVar

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
_OBJECT = re.compile(r"\{[ \t\r\n]{0,64}([\"'])([a-z_]{1,12})([\"'])[ \t\r\n]{0,64}:")
_OBJECT_BEGUN = re.compile(r"\{[ \t\r\n]{0,64}(?:[\"']([a-z_]{0,12})(?:[\"'][ \t\r\n]{0,64})?)?")
_NAMED = re.compile(r"\{[ \t\r\n]{0,64}\"name\"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}\"([^\"\n]{1,64})\"")
_FUNCTION = re.compile(r"<function=[ \t\"']{0,8}([^>\s<\"']{1,100})[ \t\"']{0,8}>")


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
        key = found[2]
        return "call" if key == "tool_call" else "bare" if key in _KEYS else ""
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


def tool_lines_at(text: str, at: int, names: Collection[str], *, final: bool) -> int | None:
    """Where the object of `TOOL: name` and, on the next line, `ARGS: {…}` begins; 0 for none."""
    word = begins(text, at, "TOOL:", final=final)
    if not word:
        return None if word is None else 0
    end = text.find("\n", at, at + 120)
    if end < 0:
        return None if not final and len(text) - at < 120 else 0
    if text[at + 5 : end].strip() not in names:
        return 0
    start = past_spaces(text, end)
    word = begins(text, start, "ARGS:", final=final)
    if not word:
        return None if word is None else 0
    start = past_spaces(text, start + 5)
    word = begins(text, start, "{", final=final)
    return start if word else None if word is None else 0


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
        lines = tool_lines_at(text, start, names, final=final)
        return None if lines is None else lines > 0
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
