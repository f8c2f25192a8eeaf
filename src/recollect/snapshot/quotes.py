"""Quotations within a bound: how room is shared, and how a text is cut.

Room is shared by weight, and what one does not need goes to the others, so that all of it is used
when there is that much to say. A quotation that is cut says so; one that would be cut to less than
`MIN_QUOTE` characters is left out. Every item begins with `- `, its further lines with two spaces:
`parse_items` reads items back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from recollect.entries import handle_of
from recollect.text import clip_again

MIN_QUOTE = 40  # characters of an item; one is rather left out than cut to less
SHORTEST, _ROUNDS = 6, 3  # characters of an item, at least; of cutting one of many lines


class Quote(NamedTuple):
    """A text, and the entry of the log that has the whole of it."""

    text: str
    entry: str = ""
    weight: float = 1.0
    shorten: Callable[[str, int], str] = clip_again  # `clip_middle` if it is the stored text

    @property
    def size(self) -> int:
        """Characters of the item, with the line end after it."""
        return len(format_item(self)) + 1


def share_room(demands: Sequence[int], weights: Sequence[float], room: int) -> list[int]:
    """What each gets of the room: its weight's share, at most its demand."""
    given = [0] * len(demands)
    waiting = {n for n, demand in enumerate(demands) if demand > 0 and weights[n] > 0}
    while waiting and room > 0:
        level = room / sum(weights[n] for n in waiting)
        full = {n for n in waiting if demands[n] <= level * weights[n]}
        for n in full or waiting:
            given[n] = demands[n] if full else int(level * weights[n])
        if not full:
            break
        room -= sum(demands[n] for n in full)
        waiting -= full
    return given


def fit_quotes(quotes: Sequence[Quote], room: int, least: int = MIN_QUOTE) -> list[str]:
    """The quotations as items, cut so that together they have at most `room` characters, and left
    out rather than cut to less than `least`."""
    most = max(2, room // SHORTEST)  # more than these have no room anyway
    kept = list(quotes) if len(quotes) <= most else [*quotes[: most // 2], *quotes[-(most // 2) :]]
    sizes = [quote.size for quote in kept]
    while True:
        given = share_room(sizes, [quote.weight for quote in kept], room)
        lost = [n for n, size in enumerate(given) if size < min(least, sizes[n])]
        if not lost:
            break
        # the lightest go, a few at a time, and of equals the oldest: the others share their room
        lightest = set(sorted(lost, key=lambda n: (kept[n].weight, n))[: len(lost) // 4 + 1])
        kept = [quote for n, quote in enumerate(kept) if n not in lightest]
        sizes = [size for n, size in enumerate(sizes) if n not in lightest]
    return [
        format_item(_cut(quote, given[n] - 1) if given[n] < sizes[n] else quote)
        for n, quote in enumerate(kept)
    ]


def _cut(quote: Quote, most: int) -> Quote:
    """A quotation whose item has at most `most` characters."""
    room = most - len(format_item(quote._replace(text="")))
    least = room // 3  # which always fits: further lines are indented by two
    for _ in range(_ROUNDS):
        cut = quote._replace(text=quote.shorten(quote.text, max(1, room)))
        excess = len(format_item(cut)) - most
        if excess <= 0:
            return cut
        room = max(least, min(room, len(cut.text)) - excess)
    return cut._replace(text=cut.text[: max(0, len(cut.text) - excess)])


def format_item(quote: Quote) -> str:
    handle = f"[{handle_of(quote.entry)}] " if quote.entry else ""
    return f"- {handle}" + quote.text.replace("\n", "\n  ")


def parse_items(text: str) -> list[str]:
    """The inverse of `format_item`, handles included; of other text, its lines."""
    items: list[str] = []
    for line in text.split("\n"):
        if line.startswith("- "):
            items.append(line[2:])
        elif line.startswith("  ") and items:
            items[-1] += "\n" + line[2:]
        elif line.strip():
            items.append(line)
    return items
