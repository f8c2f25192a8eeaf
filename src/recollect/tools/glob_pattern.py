"""Matches paths against a glob, in linear time whatever the pattern.

A model writes the patterns, so they may be hostile. Segments between two slashes mean what they
mean in an ignore file, and share its linear matching. A path with brackets or braces in its names
also matches itself: `app/[id]/page.tsx` is what web frameworks call a file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from recollect.workspace.ignore_files import compile_name, match_names

MAX_ALTERNATIVES = 100  # that braces may stand for
MAX_PATTERN = 1_000  # characters of a glob

_INNERMOST_BRACES = re.compile(r"\{([^{}]*)\}")


class GlobPattern(NamedTuple):
    alternatives: tuple[tuple[re.Pattern[str] | None, ...], ...]  # none means `**`

    def matches(self, names: Sequence[str]) -> bool:
        return any(match_names(segments, names) for segments in self.alternatives)


def parse_glob(pattern: str, *, ignore_case: bool = False) -> GlobPattern:
    """Parse a glob with `*`, `?`, `[…]`, `**` and `{a,b}`. Raises ValueError if it is blank or too
    long."""
    if not pattern.strip():
        raise ValueError("the pattern is blank; `**/*` means all files")
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN:,} characters")
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    choices = [_compile_segments(choice, flags) for choice in _expand_braces(pattern)]
    if "[" in pattern or "{" in pattern:
        choices.append(tuple(re.compile(re.escape(text), flags) for text in _split(pattern)))
    return GlobPattern(tuple(choices))


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


def _compile_segments(glob: str, flags: re.RegexFlag) -> tuple[re.Pattern[str] | None, ...]:
    return tuple(None if text == "**" else _compile_segment(text, flags) for text in _split(glob))


def _split(glob: str) -> list[str]:
    return [text for text in glob.split("/") if text not in ("", ".")]


def _compile_segment(text: str, flags: re.RegexFlag) -> re.Pattern[str]:
    # what no name can match, such as an unclosed bracket, means itself
    found = compile_name(text) or re.compile(re.escape(text))
    return re.compile(found.pattern, found.flags | flags) if flags else found
