"""Foreign text, read and shown: what in it is code, which paths it mentions, what a line may hold.

Everything here is pure and takes time linear in the text. `code_ranges` knows fences and code spans
as CommonMark has them; `find_mentions` finds `@path` outside of those. `strip_invisible` takes away characters
that show nothing and yet reach a model (controls, direction marks, tags), and halves of surrogate
pairs; `one_line` makes of a name from a disk something that cannot begin a new line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import msgspec

MAX_PATH = 1_000  # characters of a mentioned path


class Mention(msgspec.Struct, frozen=True):
    """`text[start:end]` is the mention with its @; `path` is what it names."""

    start: int
    end: int
    path: str


_INVISIBLE = (
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_FENCE = r" {0,3}(`{3,}|~{3,})([^\n]*)"
_LINE = r"[^\n]*\n|[^\n]+"
_TICKS = r"`+"
# A path begins at @ unless a letter or a digit stands before it, as in an address of mail.
_AT = (
    r"(?<![A-Za-z0-9_.+@/\\-])@(?:"
    rf'"([^"\n]{{1,{MAX_PATH}}})"|((?:\\[^\n]|[^\s\\"`<>|*?]){{1,{MAX_PATH}}}))'
)
_compiled = cache(re.compile)
_AFTER = ".,;:!'()[]{}，。；：！？、）】」》…"


def strip_invisible(text: str) -> str:
    return _compiled(_INVISIBLE).sub("", text)


def one_line(text: str, limit: int = 300) -> str:
    """A foreign name for a line of text: what cannot be printed is escaped, what is long is cut."""
    shown = "".join(c if c.isprintable() else _escaped(c) for c in text[:limit])
    return shown + "…" if len(text) > limit else shown


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def split_lines(text: str) -> list[str]:
    """Lines with their ends; unlike `splitlines`, only a line feed ends one, as in Markdown."""
    return _compiled(_LINE).findall(text)


def code_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Where code is, fences and spans, in order; a fence that is never closed goes to the end."""
    found: list[tuple[int, int]] = []
    block = 0  # where the prose begins that was not searched for spans yet
    fence, opened, position = "", 0, 0
    fenced = _compiled(_FENCE).match
    for line in split_lines(text):
        match = fenced(line)
        if fence:
            closes = match and match[1].startswith(fence) and not match[2].strip()
            if closes:
                found.append((opened, position + len(line)))
                fence, block = "", position + len(line)
        elif match and not (match[1][0] == "`" and "`" in match[2]):
            found.extend(_spans(text, block, position))
            fence, opened = match[1], position
        elif not line.strip():
            found.extend(_spans(text, block, position))
            block = position + len(line)
        position += len(line)
    if fence:
        found.append((opened, len(text)))
    else:
        found.extend(_spans(text, block, len(text)))
    return tuple(found)


def _spans(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Code spans of one block: a run of backticks up to the next run of the same length."""
    runs = [match.span() for match in _compiled(_TICKS).finditer(text, start, end)]
    by_length: dict[int, list[int]] = {}
    for first, last in runs:
        by_length.setdefault(last - first, []).append(first)
    done = start
    for first, last in runs:
        if first < done or (first > start and text[first - 1] == "\\"):
            continue
        places = by_length[last - first]
        after = bisect_right(places, first)
        if after < len(places):
            done = places[after] + last - first
            yield first, done


def find_mentions(text: str) -> tuple[Mention, ...]:
    """Every `@path` and `@"path with spaces"` outside code, in order."""
    code = code_ranges(text)
    found = []
    for match in _compiled(_AT).finditer(text):
        if not is_prose(match.start(), code):
            continue
        if match[1] is not None:
            found.append(Mention(match.start(), match.end(), match[1]))
            continue
        raw = match[2].rstrip(_AFTER)
        path = re.sub(r"\\(.)", r"\1", raw)
        if path:
            found.append(Mention(match.start(), match.start() + 1 + len(raw), path))
    return tuple(found)


def is_prose(position: int, code: tuple[tuple[int, int], ...]) -> bool:
    """Whether a position lies outside these ranges of code."""
    before = bisect_left(code, (position + 1, 0)) - 1
    return before < 0 or position >= code[before][1]


def split_at_mentions(text: str, cuts: tuple[Mention, ...]) -> Iterator[str | Mention]:
    """The text again, cut at these mentions: what stands between them, and they."""
    edges = [0, *(edge for cut in cuts for edge in (cut.start, cut.end)), len(text)]
    for number, (start, end) in enumerate(pairwise(edges)):
        yield cuts[number // 2] if number % 2 else text[start:end]
