"""The last answer of a session, and the code blocks in it, as text to copy."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from markdown_it import MarkdownIt

from recollect.agent.exchange import message_text
from recollect.display.display_text import pluralize
from recollect.entries import Entry, Message
from recollect.errors import BadInput


def last_reply(entries: Iterable[Entry]) -> str:
    """The text of the newest reply that has one; empty: there is none."""
    replies = (
        message_text(entry.body)
        for entry in reversed(tuple(entries))
        if isinstance(entry.body, Message) and entry.body.role == "model"
    )
    return next((text for text in replies if text.strip()), "")


def code_blocks(text: str) -> tuple[str, ...]:
    """The content of each code block, in order, also of those in lists and quotations."""
    tokens = MarkdownIt("commonmark").parse(text)
    found = chain.from_iterable((token, *(token.children or ())) for token in tokens)
    return tuple(token.content for token in found if token.type in ("fence", "code_block"))


def text_to_copy(entries: Iterable[Entry], number: str = "") -> str:
    """The last answer, or its code block of this number, counted from 1."""
    text = last_reply(entries)
    if not text:
        raise BadInput("there is no answer to copy yet")
    if not number:
        return text
    blocks = code_blocks(text)
    if not number.isascii() or not number.isdigit() or not 1 <= int(number[:6]) <= len(blocks):
        there = f"it has {pluralize(len(blocks), 'code block') if blocks else 'none'}"
        raise BadInput(f"the last answer has no code block {number[:20]!r}; {there}")
    return blocks[int(number) - 1]
