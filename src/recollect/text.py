"""Text that is safe to show: cleaned, and cut to a length in a way that says so.

`clean` removes terminal codes and control characters and replaces lone surrogates, so that its
result can be encoded and shown anywhere. A cut text is never longer than the length asked for. The
number in a mark is true of the whole text: what was cut before is cut again without one.
"""

from __future__ import annotations

import re
from typing import AnyStr

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]{0,2000}+(?:\x07|\x1b\\)|[@-_])")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")

LEFT_OUT = re.compile(r" \[… [\d,]{1,14} characters left out …\] ")  # the mark of `clip_middle`
UNCOUNTED = " […] "


def clean(text: str) -> str:
    if text.isprintable():  # none of the characters to remove is
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\x1b" in text:
        text = _TERMINAL.sub("", text)
    return _SURROGATE.sub("\ufffd", _CONTROL.sub("", text))


def one_line(text: str, most: int) -> str:
    """The text as one line of at most `most` characters, cut at its end."""
    return clip(" ".join(clean(text[: 4 * most + 400]).split()), most)


def clip(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "…" if most > 0 else ""


def clip_middle(text: str, most: int) -> str:
    """The beginning and the end of a text, with the number of characters left out between them."""
    if len(text) <= most:
        return text
    mark = f" [… {len(text) - most:,} characters left out …] "
    room = most - len(mark) - 2
    if room < 40:
        return clip(text, most)
    head = room * 2 // 3
    left_out = len(text) - room
    return f"{text[:head]} [… {left_out:,} characters left out …] {text[-(room - head) :]}"


def clip_again(text: str, most: int) -> str:
    """The beginning and the end of a text that may have been cut before, or that nobody stored: a
    number would be false of the whole."""
    if len(text) <= most:
        return text
    text, room = LEFT_OUT.sub(UNCOUNTED, text), most - len(UNCOUNTED)
    if room < 40 or len(text) <= most:
        return clip(text, most)
    return text[: room * 2 // 3] + UNCOUNTED + text[room * 2 // 3 - room :]


def format_size(count: float) -> str:
    """A number of bytes, in the unit that suits it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1_000
    return f"{count:,.1f} TB"


def common_length(one: AnyStr, other: AnyStr) -> int:
    """How much two texts share at their beginning: halves are compared, not single characters."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
