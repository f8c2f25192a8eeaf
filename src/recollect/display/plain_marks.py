"""Text for terminals that cannot show every character, in ASCII.

Our own marks become ASCII that looks like them; any other character becomes its number.
"""

from __future__ import annotations

import re

MARKS = {
    "…": "...",
    "·": "-",
    "→": "->",
    "←": "<-",
    "↓": "v",
    "−": "-",
    "●": "*",
    "•": "*",
    "○": "o",
    "◌": "~",
    "├": "|",
    "┼": "+",
    "─": "-",
    "│": "|",
    "⑂": "Y",
    "✓": "ok",
    "✗": "x",
    **dict.fromkeys("█▉▊▋▌", "#"),
    **dict.fromkeys("▐▍▎▏", "|"),
    "░": ".",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "—": "-",
}
_OTHER = re.compile(r"[^\x00-\x7f]")


def ascii_text(text: str) -> str:
    """The text with nothing in it that a terminal without Unicode cannot show."""
    return text if text.isascii() else _OTHER.sub(_ascii_character, text)


def _ascii_character(found: re.Match[str]) -> str:
    character = found[0]
    return MARKS.get(character) or character.encode("ascii", "backslashreplace").decode()
