"""Other projections of a log: a router's window, and pages of the history.

Pure, and in the order of the log. Pages taken from the newest to the oldest hold each entry exactly
once, even if the history grows at its end meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.entries import Entry, Message, Text
from recollect.errors import UnknownEntry
from recollect.view.curation import is_spoken, is_tool_result
from recollect.view.view import View

MAX_PAGE_SIZE = 500


def routing_window(view: View, last: int = 20, of_these: int = 4) -> tuple[Message, ...]:
    """What a router looks at: only the text of the newest `last` messages, and of those with any
    text the newest `of_these`."""
    newest = view.messages[-last:] if last > 0 else ()
    texts = [text for message in newest if (text := _text_only(message)).parts]
    return tuple(texts[-of_these:]) if of_these > 0 else ()


def last_prompt(view: View) -> Message | None:
    """What the user said last, also when a compaction hides it; walks back no further than that."""
    for position in range(view.n - 1, -1, -1):
        message = view.log.message(position)
        if message is not None and is_spoken(message):
            return message
    return None


def _text_only(message: Message) -> Message:
    texts = [part for part in message.parts if isinstance(part, Text) and part.text.strip()]
    if len(texts) == len(message.parts):
        return message
    return msgspec.structs.replace(message, parts=tuple(texts))


def last_turns(view: View, turns: int = 5) -> tuple[Message, ...]:
    """The newest turns: each begins with what the user said, and has everything up to the next."""
    messages = view.messages
    starts = [at for at, message in enumerate(messages) if _begins_turn(message)]
    return (
        messages[starts[-turns] :]
        if 0 < turns <= len(starts)
        else messages[: len(messages) if turns > 0 else 0]
    )


def _begins_turn(message: Message) -> bool:
    return message.role == "user" and not message.context and not is_tool_result(message)


class HistoryPage(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]  # newest last
    before: str | None = None  # the cursor of the previous page; None on the first page


def take_page(
    entries: Sequence[Entry], *, before: str | None = None, limit: int = 20
) -> HistoryPage:
    """The newest entries, or those right before the entry `before`; `limit` is clamped to 1 and
    `MAX_PAGE_SIZE`."""
    end = len(entries) if before is None else _find_position(entries, before)
    start = max(0, end - min(max(1, limit), MAX_PAGE_SIZE))
    cursor = entries[start].id if start else None
    return HistoryPage(tuple(entries[start:end]), cursor)


def _find_position(entries: Sequence[Entry], wanted: str) -> int:
    for position in range(len(entries) - 1, -1, -1):  # readers are mostly near the end
        if entries[position].id == wanted:
            return position
    raise UnknownEntry(wanted)
