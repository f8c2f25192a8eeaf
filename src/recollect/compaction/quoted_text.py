"""Texts of users, tools and models as data in a request: framed, and cut to a number of tokens.

A frame is a line with a marker that none of the texts contains or can predict, so no text can end
it and speak for itself.
"""

from __future__ import annotations

import hashlib

from recollect.text import LEFT_OUT, UNCOUNTED
from recollect.tokens import Counter

MAX_CHARACTERS = 8  # of a token, hardly ever more; a text that is too long anyway is not counted


def make_marker(text: str) -> str:
    """A marker that the text does not contain and cannot predict: it is a hash of all of it."""
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    while mark in text:
        mark = hashlib.sha256(mark.encode()).hexdigest()[:16]
    return mark


def frame_sections(sections: dict[str, str]) -> str:
    """Texts as data, each after a line with its title, between lines that none of them has."""
    mark = make_marker("".join(sections.values()))
    lines = [f"[{mark}: {title}]\n{text}" for title, text in sections.items()]
    return "\n".join((*lines, f"[{mark}: end of the material]"))


def fits_in_tokens(text: str, tokens: int, counter: Counter) -> bool:
    return len(text) <= max(tokens, 0) * MAX_CHARACTERS and counter.text(text) <= tokens


def clip_to_tokens(
    text: str, tokens: int, counter: Counter, *, head: float, counted: bool = True
) -> str:
    """The text, or its beginning and end within this many tokens; `head` is the share of the
    beginning. Not `counted`: a text that was cut before, or that nobody stored, so that no number
    would be true of the whole."""
    if fits_in_tokens(text, tokens, counter):
        return text
    if not counted and text != (plain := LEFT_OUT.sub(UNCOUNTED, text)):
        return clip_to_tokens(plain, tokens, counter, head=head, counted=False)
    size = min(len(text), max(tokens, 0) * MAX_CHARACTERS)
    while size > 0:
        first = int(size * head)
        last = size - first
        mark = f"[… {len(text) - size:,} characters left out …]" if counted else UNCOUNTED.strip()
        cut = f"{text[:first]}\n{mark}\n{text[-last:] if last else ''}"
        found = counter.text(cut)
        if found <= tokens:
            return cut
        size = min(size * 9 // 10, size * max(tokens, 0) // found)
    return ""
