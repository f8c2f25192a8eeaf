"""Which paths a glob means, in linear time whatever the pattern says.

Patterns are a model's, so they are hostile. Each piece between two slashes becomes an expression
that never goes back over what it has matched, and `**` is found by a loop that goes back once at
most for each name.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

MAX_ALTERNATIVES = 100  # that braces may stand for
MAX_PATTERN = 1_000  # characters of a glob

_ANY_FOLDERS = "**"
_SegmentPattern: TypeAlias = "re.Pattern[str] | None"  # None is `**`: any number of folders
_ANY_NAME = re.compile("(?s:.+)")


class GlobPattern(NamedTuple):
    alternatives: tuple[tuple[_SegmentPattern, ...], ...]

    def fits(self, names: Sequence[str]) -> bool:
        return any(_match_segments(pieces, names) for pieces in self.alternatives)


def parse_glob(pattern: str) -> GlobPattern:
    """A glob with `*`, `?`, `[…]`, `**` and `{a,b}`. Raises ValueError when it says too much."""
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"a pattern has at most {MAX_PATTERN:,} characters")
    return GlobPattern(
        tuple(_compile_segments(text.split("/")) for text in _expand_braces(pattern))
    )


def _expand_braces(pattern: str) -> tuple[str, ...]:
    """The patterns that one with braces stands for; braces that do not close mean themselves."""
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
    pieces: list[_SegmentPattern] = []
    for text in texts:
        if text in ("", "."):
            continue
        if text != _ANY_FOLDERS:
            pieces.append(re.compile(_segment_expression(text)))
        elif not pieces or pieces[-1] is not None:
            pieces.append(None)
    if pieces and pieces[-1] is None:
        pieces.append(_ANY_NAME)  # `a/**` is what is in a, not a itself
    return tuple(pieces)


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


def _match_segments(pieces: Sequence[_SegmentPattern], names: Sequence[str]) -> bool:
    piece = name = 0
    back_to, taken = -1, 0  # the newest `**`, and how many names it has taken up to
    while name < len(names):
        if piece < len(pieces) and pieces[piece] is None:
            back_to, taken = piece, name
            piece += 1
        elif piece < len(pieces) and _matches(pieces[piece], names[name]):
            piece += 1
            name += 1
        elif back_to >= 0:
            taken += 1
            piece, name = back_to + 1, taken
        else:
            return False
    return all(rest is None for rest in pieces[piece:])


def _matches(piece: _SegmentPattern, name: str) -> bool:
    return piece is not None and piece.match(name) is not None
