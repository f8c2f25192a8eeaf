"""Texts of users, tools and models as data in a request: framed, and cut to a number of tokens.

A frame is a line with a marker that none of the texts contains or can predict, so no text can end
it and speak for itself.
"""

from __future__ import annotations

import hashlib

from recollect.tokens import Counter


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


def clip_to_tokens(text: str, tokens: int, counter: Counter, *, head: float) -> str:
    """The text, or its beginning and end within this many tokens; `head` is the share of the
    beginning."""
    # longer texts are not counted: hardly any text has more than eight characters per token
    size = max(tokens, 0) * 8
    if len(text) <= size and counter.text(text) <= tokens:
        return text
    size = min(len(text), size)
    while size > 0:
        first = int(size * head)
        last = size - first
        mark = f"\n[… {len(text) - size:,} characters left out …]\n"
        cut = text[:first] + mark + (text[-last:] if last else "")
        found = counter.text(cut)
        if found <= tokens:
            return cut
        size = min(size * 9 // 10, size * max(tokens, 0) // found)
    return ""
