"""The passage of a text in which the words of a search stand together.

A passage has whole lines, and more of what follows the words than of what precedes them: a command
stands before its output, a name before its value. Only a line that is longer than the passage is
cut, with a mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.store.word_places import Place

_CUT = "…"
_BEFORE = 0.3  # of the room beside the words


class TextPassage(NamedTuple):
    text: str
    marks: tuple[tuple[int, int], ...]  # the words in it


class Window(NamedTuple):
    """The part of a text with the heaviest words; `score` is their weight, each word once."""

    start: int
    end: int
    score: float
    rest: float  # the weight of the words that stand elsewhere in the text


def best_window(places: Sequence[Place], weights: Sequence[float], length: int) -> Window:
    """Of the windows with the same words, the narrowest one, and of these the first."""
    total = sum(weights[word] for word in {place.word for place in places})
    best, span = Window(0, 0, 0.0, total), 0
    inside: dict[int, int] = {}
    score, first = 0.0, 0
    for place in places:
        if not inside.get(place.word):
            score += weights[place.word]
        inside[place.word] = inside.get(place.word, 0) + 1
        while first < len(places) and _can_go(places[first], place, inside, length):
            gone = places[first].word
            inside[gone] -= 1
            score -= 0.0 if inside[gone] else weights[gone]
            first += 1
        start = places[first].start
        better = score > best.score + 1e-9
        narrower = score > best.score - 1e-9 and place.end - start < span
        if better or narrower:
            best, span = Window(start, place.end, score, total - score), place.end - start
    return best


def _can_go(oldest: Place, newest: Place, inside: dict[int, int], length: int) -> bool:
    """Whether the window is too long, or its oldest word stands in it again."""
    if oldest is newest:
        return False
    return newest.end - oldest.start > length or inside[oldest.word] > 1


def cut_passage(text: str, window: Window, places: Sequence[Place], length: int) -> TextPassage:
    """About `length` characters around the window, without blank lines at the ends."""
    start, end = _skip_blank_lines(text, *passage_bounds(text, window, length))
    head = _CUT if start and text[start - 1] != "\n" else ""
    tail = _CUT if end < len(text) and text[end] != "\n" else ""
    moved = ((p.start - start + len(head), p.end - start + len(head)) for p in places)
    shown = head + text[start:end] + tail
    last, marks = 0, []
    for a, b in moved:
        if a >= max(last, len(head)) and b <= len(shown) - len(tail):
            marks.append((a, b))
            last = b
    return TextPassage(shown, tuple(marks))


def _skip_blank_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Without the lines at both ends that have nothing but spaces; indentation stays."""
    piece = text[start:end]
    first = piece.rfind("\n", 0, len(piece) - len(piece.lstrip())) + 1
    last = piece.find("\n", max(first, len(piece.rstrip())))
    return start + first, start + last if last >= 0 else end


def passage_bounds(text: str, window: Window, length: int) -> tuple[int, int]:
    """Where a passage around the window begins and ends."""
    room = max(0, length - (window.end - window.start))
    start = max(0, window.start - int(room * _BEFORE))
    end = min(len(text), start + max(length, window.end - window.start))
    start = max(0, min(start, end - length))
    return _line_start(text, start, window.start, length), _line_end(text, end, window.end, length)


def _line_start(text: str, start: int, limit: int, length: int) -> int:
    """The beginning of a line near `start`: the next one, or this one's if the words are in it."""
    if start == 0 or text[start - 1] == "\n":
        return start
    following = text.find("\n", start, limit)
    if following >= 0:
        return following + 1
    own = text.rfind("\n", 0, start) + 1
    if start - own <= length // 3:
        return own
    space = text.find(" ", start, min(start + 20, limit))
    return space + 1 if space >= 0 else start


def _line_end(text: str, end: int, limit: int, length: int) -> int:
    if end >= len(text) or text[end] == "\n":
        return end
    before = text.rfind("\n", limit, end)
    own = text.find("\n", end)
    own = len(text) if own < 0 else own
    if own - end <= length // 6:
        return own
    if before >= 0:
        return before
    if own - end <= length // 3:
        return own
    space = text.rfind(" ", max(limit, end - 20), end)
    return space if space >= 0 else end
