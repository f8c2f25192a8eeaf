"""Matches paths against a glob, in linear time whatever the pattern.

A model writes the patterns, so they may be hostile. Each segment between two slashes becomes an
expression that never backtracks, and `**` is matched by a loop that goes back at most once for each
name.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

MAX_ALTERNATIVES = 100  # that braces may stand for
MAX_PATTERN = 1_000  # characters of a glob

_ANY_FOLDERS = "**"
_SegmentPattern: TypeAlias = re.Pattern[str] | None  # None is `**`: any number of folders
_ANY_NAME = re.compile("(?s:.+)")


class GlobPattern(NamedTuple):
    alternatives: tuple[tuple[_SegmentPattern, ...], ...]

    def matches(self, names: Sequence[str]) -> bool:
        return any(_match_segments(segments, names) for segments in self.alternatives)


def parse_glob(pattern: str) -> GlobPattern:
    """Parse a glob with `*`, `?`, `[…]`, `**` and `{a,b}`. Raises ValueError if it is too long."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN:,} characters")
    expanded = _expand_braces(pattern)
    return GlobPattern(tuple(_compile_segments(text.split("/")) for text in expanded))


def _expand_braces(pattern: str) -> tuple[str, ...]:
    """The patterns without braces that one stands for; unclosed braces are ordinary characters."""
    done: dict[str, None] = {}
    todo = [pattern]
    while todo:
        text = todo.pop()
        found = _innermost_braces(text)
        if found is None:
            done[text] = None
        else:
            start, end = found
            choices = text[start + 1 : end].split(",")
            todo += [text[:start] + choice + text[end + 1 :] for choice in reversed(choices)]
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise ValueError(f"the braces stand for more than {MAX_ALTERNATIVES} patterns")
    return tuple(done)


def _innermost_braces(text: str) -> tuple[int, int] | None:
    start = -1
    for position, character in enumerate(text):
        if character == "{":
            start = position
        elif character == "}" and start >= 0:
            return start, position
    return None


def _compile_segments(texts: Iterable[str]) -> tuple[_SegmentPattern, ...]:
    segments: list[_SegmentPattern] = []
    for text in texts:
        if text in ("", "."):
            continue
        if text != _ANY_FOLDERS:
            segments.append(re.compile(_segment_expression(text)))
        elif not segments or segments[-1] is not None:
            segments.append(None)
    if segments and segments[-1] is None:
        segments.append(_ANY_NAME)  # `a/**` matches what is in a, not a itself
    return tuple(segments)


def _segment_expression(text: str) -> str:
    """`fnmatch` makes atomic groups of each star, so nothing is tried twice."""
    plain: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and position + 1 < len(text):
            position += 1
            following = text[position]
            plain.append(f"[{following}]" if following in "*?[" else following)
        elif character == "[" and text[position + 1 : position + 2] == "^":
            plain.append("[!")
            position += 1
        else:
            plain.append(character)
        position += 1
    return fnmatch.translate("".join(plain))


def _match_segments(segments: Sequence[_SegmentPattern], names: Sequence[str]) -> bool:
    segment = name = 0
    back_to, taken = -1, 0  # the newest `**`, and how many names it has taken up to
    while name < len(names):
        if segment < len(segments) and segments[segment] is None:
            back_to, taken = segment, name
            segment += 1
        elif segment < len(segments) and _matches(segments[segment], names[name]):
            segment += 1
            name += 1
        elif back_to >= 0:
            taken += 1
            segment, name = back_to + 1, taken
        else:
            return False
    return all(rest is None for rest in segments[segment:])


def _matches(segment: _SegmentPattern, name: str) -> bool:
    return segment is not None and segment.match(name) is not None
