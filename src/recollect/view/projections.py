"""Other readers' folds over the same log: everything, a router's window, a page of a history.

Each is pure, keeps the order of the log and changes nothing. Pages taken one before the other give
the whole, each entry once, however the history grows at its end meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from recollect.entries import Entry, Message, Text
from recollect.errors import UnknownEntry
from recollect.view.view import View

MAX_PAGE_SIZE = 500


def full(entries: Iterable[Entry]) -> tuple[Message, ...]:
    """Every message, also what is empty, invalid, left out or compacted."""
    return tuple([entry.body for entry in entries if isinstance(entry.body, Message)])


def routing_window(view: View, last: int = 20, of_these: int = 4) -> tuple[Message, ...]:
    """What a router looks at: of the newest `last` messages the text alone, and of those that say
    anything the newest `of_these`."""
    newest = view.messages[-last:] if last > 0 else ()
    said = [text for message in newest if (text := _text_only(message)).parts]
    return tuple(said[-of_these:]) if of_these > 0 else ()


def _text_only(message: Message) -> Message:
    said = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
    if len(said) == len(message.parts):
        return message
    return msgspec.structs.replace(message, parts=tuple(said))


class HistoryPage(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]  # newest last
    before: str | None = None  # the cursor for the page before; none when this is the first


def take_page(
    entries: Sequence[Entry], *, before: str | None = None, limit: int = 20
) -> HistoryPage:
    """The newest entries, or those right before the entry `before`; at least one and at most
    `MAX_PAGE_SIZE`, whatever `limit` says."""
    end = len(entries) if before is None else _find_position(entries, before)
    start = max(0, end - min(max(1, limit), MAX_PAGE_SIZE))
    cursor = entries[start].id if start else None
    return HistoryPage(tuple(entries[start:end]), cursor)


def _find_position(entries: Sequence[Entry], wanted: str) -> int:
    for position in range(len(entries) - 1, -1, -1):  # a reader is mostly near the end
        if entries[position].id == wanted:
            return position
    raise UnknownEntry(wanted)
