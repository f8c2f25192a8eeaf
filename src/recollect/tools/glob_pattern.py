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

_SegmentPattern: TypeAlias = re.Pattern[str] | None  # None is `**`: any number of folders
_ANY_NAME = re.compile("(?s:.+)")
_INNERMOST_BRACES = re.compile(r"\{([^{}]*)\}")
_NO_NAME = re.compile("(?!)")
_ESCAPE = re.compile(r"\\(.)|\[\^", re.DOTALL)


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
        if braces := _INNERMOST_BRACES.search(text):
            before, after = text[: braces.start()], text[braces.end() :]
            todo += [before + choice + after for choice in reversed(braces[1].split(","))]
        else:
            done[text] = None
        if len(done) + len(todo) > MAX_ALTERNATIVES:
            raise ValueError(f"the braces stand for more than {MAX_ALTERNATIVES} patterns")
    return tuple(done)


def _compile_segments(texts: Iterable[str]) -> tuple[_SegmentPattern, ...]:
    segments: list[_SegmentPattern] = []
    for text in texts:
        if text in ("", "."):
            continue
        if text != "**":
            segments.append(re.compile(_segment_expression(text)))
        elif not segments or segments[-1] is not None:
            segments.append(None)
    if segments and segments[-1] is None:
        segments.append(_ANY_NAME)  # `a/**` matches what is in a, not a itself
    return tuple(segments)


def _segment_expression(text: str) -> str:
    """`fnmatch` makes atomic groups of each star, so nothing is tried twice."""

    def plain(escape: re.Match[str]) -> str:
        character = escape[1]
        if character is None:
            return "[!"
        return f"[{character}]" if character in "*?[" else character

    return fnmatch.translate(_ESCAPE.sub(plain, text))


def _match_segments(segments: Sequence[_SegmentPattern], names: Sequence[str]) -> bool:
    segment = name = 0
    back_to, taken = -1, 0  # the newest `**`, and how many names it has taken up to
    while name < len(names):
        wanted = segments[segment] if segment < len(segments) else _NO_NAME
        if wanted is None:
            back_to, taken = segment, name
            segment += 1
        elif wanted is not None and wanted.match(names[name]):
            segment += 1
            name += 1
        elif back_to >= 0:
            taken += 1
            segment, name = back_to + 1, taken
        else:
            return False
    return all(rest is None for rest in segments[segment:])
