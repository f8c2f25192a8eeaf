"""Output for terminals that cannot show every character.

Our own marks become ASCII that looks like them; any other character becomes its number.
"""

from __future__ import annotations

import codecs
import io
import sys
from contextlib import suppress

HANDLER = "recollect"  # the name of our way to handle encoding errors
_MARKS = {
    "…": "...",
    "·": "-",
    "→": "->",
    "←": "<-",
    "−": "-",
    "●": "*",
    "○": "o",
    "├": "|",
    "─": "-",
    "│": "|",
    "⑂": "Y",
    "✓": "ok",
    "✗": "x",
    "█": "#",
    "▏": "|",
    "░": ".",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "–": "-",
    "—": "-",
}


def use_plain_characters() -> None:
    """Never fail for a character on stdout or stderr, nor for a byte on stdin."""
    codecs.register_error(HANDLER, _replace)
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, HANDLER), (sys.stderr, HANDLER)):
        with suppress(io.UnsupportedOperation):  # something was read from it already
            getattr(stream, "reconfigure", lambda **_: None)(errors=errors)


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    first = error.object[error.start]
    if first in _MARKS:
        return _MARKS[first], error.start + 1
    one = UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, "")
    return codecs.backslashreplace_errors(one)
