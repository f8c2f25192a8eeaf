"""Output for terminals that cannot show every character.

Our own marks become ASCII that looks like them; any other character becomes its number.
"""

from __future__ import annotations

import codecs
import sys

from recollect.display.plain_marks import MARKS

HANDLER = "recollect"  # the name of our way to handle encoding errors


def use_plain_characters() -> None:
    """Show every character on stdout and stderr as well as their encodings can."""
    codecs.register_error(HANDLER, _replace)
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(errors=HANDLER)


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    first = error.object[error.start]
    if first in MARKS:
        return MARKS[first], error.start + 1
    one = UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, "")
    return codecs.backslashreplace_errors(one)
