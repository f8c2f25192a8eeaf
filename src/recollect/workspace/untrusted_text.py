"""Text from outside: find the code and the `@path` mentions in it, and make it safe to show.

Everything here is pure and linear in the text. `code_ranges` finds fences and code spans as in
CommonMark; `find_mentions` finds `@path` outside of code. `strip_invisible` removes characters that
are not displayed but reach a model (controls, direction marks, tags), and unpaired surrogates;
`one_line` turns a file name into something that cannot start a new line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

import msgspec

MAX_PATH = 1_000  # characters of a mentioned path


class Mention(msgspec.Struct, frozen=True):
    """`text[start:end]` is the mention with its @; `path` is the path it names."""

    start: int
    end: int
    path: str


_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_TICKS = re.compile(r"`+")
# A path starts at @ unless a letter or a digit is before it, as in an e-mail address.
# Blanks end it, except for those that never break a line: macOS puts them into names.
_NO_BREAK = "\u00a0\u2007\u202f"
_AT = re.compile(
    r"(?<![A-Za-z0-9_.+@/\\-])@(?:"
    rf'"([^"\n]{{1,{MAX_PATH}}})"'
    rf'|((?:\\[^\n]|[^\s\\"`<>|*?]|[{_NO_BREAK}]){{1,{MAX_PATH}}}))'
)
_PUNCTUATION = f".,;:!'()[]{{}}，。；：！？、）】」》…{_NO_BREAK}"
_LINE_NUMBERS = re.compile(r"(?::\d{1,9}){1,2}$")  # as in `app.py:42:7`
_BRACKET = re.compile(rf"[(\[{{{_NO_BREAK}]")


def strip_invisible(text: str) -> str:
    return _INVISIBLE.sub("", text)


def one_line(text: str, limit: int = 300) -> str:
    """A name on one line: unprintable characters are escaped, a long name is cut."""
    shown = "".join(c if c.isprintable() else _escape(c) for c in text[:limit])
    return shown + "…" if len(text) > limit else shown


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def split_lines(text: str) -> list[str]:
    """Lines with their ends; unlike `splitlines`, only a line feed ends one, as in Markdown."""
    return _LINE.findall(text)


def code_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """The ranges of code, fences and spans, in order; an unclosed fence reaches to the end."""
    found: list[tuple[int, int]] = []
    block = 0  # start of the prose that has not been searched for spans
    fence, opened, position = "", 0, 0
    for line in split_lines(text):
        match = _FENCE.match(line)
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
    runs = [match.span() for match in _TICKS.finditer(text, start, end)]
    by_length: dict[int, list[int]] = {}
    for first, last in runs:
        by_length.setdefault(last - first, []).append(first)
    done = start
    for first, last in runs:
        if first < done or (first > start and text[first - 1] == "\\"):
            continue
        starts = by_length[last - first]
        after = bisect_right(starts, first)
        if after < len(starts):
            done = starts[after] + last - first
            yield first, done


def find_mentions(text: str) -> tuple[Mention, ...]:
    """Every `@path` and `@"path with spaces"` outside code, in order."""
    code = code_ranges(text)
    found = []
    for match in _AT.finditer(text):
        if not is_prose(match.start(), code):
            continue
        if match[1] is not None:
            found.append(Mention(match.start(), match.end(), match[1]))
            continue
        raw = match[2].rstrip(_PUNCTUATION)
        path = re.sub(r"\\(.)", r"\1", raw)
        if path:
            found.append(Mention(match.start(), match.start() + 1 + len(raw), path))
    return tuple(found)


def shorter_paths(path: str) -> tuple[str, ...]:
    """What a mention may mean if nothing has that name: the path before line numbers, or before a
    bracket, as in `app.py(the first part)`."""
    unnumbered = _LINE_NUMBERS.sub("", path)
    before = _BRACKET.split(unnumbered, maxsplit=1)[0].rstrip(_PUNCTUATION)
    return tuple(dict.fromkeys(each for each in (unnumbered, before) if each not in ("", path)))


def is_prose(position: int, code: tuple[tuple[int, int], ...]) -> bool:
    """Whether a position is outside these ranges of code."""
    before = bisect_left(code, (position + 1, 0)) - 1
    return before < 0 or position >= code[before][1]


def split_at_mentions(text: str, cuts: tuple[Mention, ...]) -> Iterator[str | Mention]:
    """The text split at these mentions: the texts between them, and the mentions."""
    edges = [0, *(edge for cut in cuts for edge in (cut.start, cut.end)), len(text)]
    for number, (start, end) in enumerate(pairwise(edges)):
        yield cuts[number // 2] if number % 2 else text[start:end]
