"""Text for a terminal: sanitized, measured in columns, truncated, and aligned in tables.

Stored text comes from models, tools and files. `sanitize` leaves nothing in it that a terminal
would obey or hide: control characters (and with them escape sequences), bidirectional overrides,
tags, invisible characters and lone surrogates are shown as escapes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_ZERO_WIDTH = ("Mn", "Me", "Cf")
GAP = "  "


def sanitize(text: str) -> str:
    """The text with every invisible or control character escaped, except tabs and line ends."""
    if text.isprintable():  # the usual case; no unsafe character is printable
        return text
    return _UNSAFE.sub(_escape, text.replace("\r\n", "\n"))


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)  # the control pictures ␀ to ␟
    if code == 0x7F:
        return "␡"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    return sanitize(" ".join(text.split()))


def display_width(text: str) -> int:
    """How many columns a terminal uses for a text."""
    if text.isascii():
        return len(text)
    return sum(_char_width(c) for c in text)


def _char_width(char: str) -> int:
    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def truncate(text: str, width: int) -> str:
    """At most `width` columns of a text, ending in … if it was longer."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += _char_width(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def align_table(
    rows: Sequence[Sequence[str]], *, width: int | None, stretch: int, numbers: Sequence[int] = ()
) -> list[list[str]]:
    """Cells padded to columns; column `stretch` is truncated so that the rows fit `width`."""
    if not rows:
        return []
    widths = [max(display_width(row[i]) for row in rows) for i in range(len(rows[0]))]
    if width is not None:
        others = sum(widths) - widths[stretch] + len(GAP) * (len(widths) - 1)
        widths[stretch] = max(8, min(widths[stretch], width - others))
    return [
        [
            pad(truncate(cell, widths[i]) if i == stretch else cell, widths[i], right=i in numbers)
            for i, cell in enumerate(row)
        ]
        for row in rows
    ]


WORTHLESS = 100  # characters: to leave out so few saves less than the line that says so


class Shortened(NamedTuple):
    head: str
    left: str = ""  # how much was left out after it, in words
    tail: str = ""


def shorten(text: str, *, lines: int, characters: int, tail: float = 0.0) -> Shortened:
    """The beginning of a long text, and this share of what is shown from its end."""
    text = text.rstrip("\n")
    head_lines = max(1, round(lines * (1 - tail)))
    head = _first_lines(text, head_lines, max(1, round(characters * (1 - tail))))
    if len(head) == len(text):
        return Shortened(text)
    end = ""
    if tail and lines > head_lines:
        room = max(0, characters - len(head))
        end = _first_lines(text[len(head) :][::-1], lines - head_lines, room)[::-1]
    left = text[len(head) : len(text) - len(end)]
    more = left.count("\n")
    if not left.strip() or (len(left) <= WORTHLESS and more <= 1):
        return Shortened(text)
    what = f"{more:,} more lines, " if more > 1 else ""
    return Shortened(head, f"{what}{len(left):,} more characters", end)


def _first_lines(text: str, lines: int, characters: int) -> str:
    return "\n".join(text.split("\n", lines)[:lines])[:characters]


def format_value(value: object) -> str:
    """A value of a JSON document in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return one_line(", ".join(map(str, value))) or "-"
    if isinstance(value, int | float):
        return f"{value:,}"
    return "-" if value in (None, "") else one_line(str(value))


def format_cost(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:.6f}".rstrip("0").rstrip(".")


def pluralize(count: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count:,} {noun if count == 1 else plural}"
