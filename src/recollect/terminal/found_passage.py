"""The place that a search found, as the conversation shows it.

A hit can be on another branch than the one that is open: then it is said where it is, and how to go
there.
"""

from __future__ import annotations

import msgspec

from recollect.display.display_text import one_line, truncate
from recollect.entries import Entry, Message, Text
from recollect.store.contract import SearchHit, Store
from recollect.view.curation import is_spoken

NEAR = 100  # entries before the one that was found, in which its prompt is looked for
_MAX_PROMPT = 60


class FoundPassage(msgspec.Struct, frozen=True):
    session: str
    entry: str
    words: tuple[str, ...] = ()  # that were found there, in lower case
    calls: tuple[str, ...] = ()  # whose arguments or results have them


def passage_of(hit: SearchHit) -> FoundPassage:
    marked = (hit.snippet[start:end].casefold().strip() for start, end in hit.marks)
    words = tuple(word for word in dict.fromkeys(marked) if word)
    return FoundPassage(hit.session.id, hit.entry.id, words, hit.call_ids)


def count_words(text: str, words: tuple[str, ...]) -> int:
    """How many of these words a text has."""
    folded = text.casefold()
    return sum(word in folded for word in words)


async def describe_elsewhere(store: Store, passage: FoundPassage) -> str:
    """Where an entry is that the branch shown does not have."""
    entries = await store.path(passage.session, at=passage.entry, last=NEAR, damaged="mark")
    said = next(filter(None, map(_spoken, reversed(entries))), "")
    after = f", below the prompt {truncate(one_line(said), _MAX_PROMPT)!r}" if said else ""
    short = (await store.short_entry_ids([passage.entry]))[passage.entry]
    return (
        f"entry {short}, which was found, is on another branch of this session{after}: "
        f"/recall {short} shows it, /tree shows the branches, /rewind to {short} goes there"
    )


def _spoken(entry: Entry) -> str:
    """What the user said in a prompt."""
    body = entry.body
    if not isinstance(body, Message) or not is_spoken(body):
        return ""
    return next((part.text for part in body.parts if isinstance(part, Text)), "")
