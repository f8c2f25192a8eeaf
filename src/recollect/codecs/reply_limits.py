"""How large a reply may be, in one place. Whatever exceeds a limit is a `BadReply` that names it.

The longest replies that models offer have about a megabyte of text, and a large picture has ten.
The limits are far above both, and low enough that no server can fill the memory: a reply exists
several times for a moment while it is decoded, stored as a draft and appended, and one character
outside of the basic plane makes a text take four bytes for each.
"""

from __future__ import annotations

from recollect.errors import BadReply

MAX_REPLY = 64_000_000  # bytes of a stream, everything included
MAX_EVENT = 16_000_000  # bytes of one event, and of a reply that comes in one piece
MAX_LINES = 100_000  # in one event
# characters that a reply holds; half as many where one of them is not ASCII
MAX_CONTENT = 16_000_000  # with arguments and media
MAX_TEXT = 8_000_000  # text and thoughts, which exist once more in the draft of the reply
MAX_TOOL_TEXT = 3_000_000  # text in which calls are looked for, which exists once more for that
MAX_ARGUMENTS = 8_000_000  # characters of one call
MAX_CALLS = 1_000
MAX_HISTORY = 4_000_000  # bytes of the calls that a server ran by itself, with their results
MAX_HISTORIES = 100  # that differ, in one stream; Google's SDK stops after ten
MAX_PARTS = 10_000  # calls among them
MAX_VALUES = 500_000  # brackets and commas: a value of two bytes takes up to two hundred in memory
_FEW = 1_000_000  # bytes in which values are not counted


def refuse(limit: int, what: str) -> BadReply:
    return BadReply(f"more than {limit:,} {what}", is_damage=False)


def check_values(data: bytes) -> None:
    """Refuse JSON with too many values, before it is decoded."""
    if len(data) > _FEW and data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise refuse(MAX_VALUES, "values in one event")
