"""A line that begins with an exclamation mark is a command of the user's own."""

from __future__ import annotations


def parse_shell(text: str) -> str | None:
    """The command line; None if it is a prompt. Two marks, as in a word that is shouted, and a mark
    alone are a prompt."""
    if not text.startswith("!") or text.startswith("!!"):
        return None
    return text[1:].strip() or None
