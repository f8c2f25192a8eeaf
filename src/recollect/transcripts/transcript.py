"""A session as a file tells it: a tree of entries, and which of its leaves the program stood at.

The entries' ids are derived from what the file says and from the entry before, so the same history
always has the same ids and a different one never has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from recollect.entries import Entry, Note
from recollect.store.ids import derived_id
from recollect.transcripts.json_patch import Json
from recollect.transcripts.record_reader import canonical_json
from recollect.transcripts.tolerant_json import FormatName, ImportProblem


class SubagentInfo(msgspec.Struct, frozen=True):
    """What is known of a subagent, whose conversation is a session of its own."""

    parent: str  # our id of the session that called it
    call: str = ""  # the id of the call that it answers
    description: str = ""
    kind: str = ""


class Transcript(msgspec.Struct, frozen=True):
    format: FormatName
    session: str  # our id for it
    created: int
    entries: tuple[Entry, ...]  # parents first
    leaf: str | None
    title: str = ""  # for the list of sessions only
    heading: str = ""  # a title that the file gives; becomes an entry
    header: str = ""  # JSON: `extra` of the source, so that the file can be written again
    problems: tuple[ImportProblem, ...] = ()
    notes: tuple[Note, ...] = ()  # about the session, for people; written after its entries
    agent: SubagentInfo | None = None  # when it is a subagent's conversation
    subagents: tuple[Transcript, ...] = ()  # told in the same file

    @property
    def path(self) -> tuple[Entry, ...]:
        """From the first entry to the leaf."""
        entries = {entry.id: entry for entry in self.entries}
        found: list[Entry] = []
        at = self.leaf
        while at is not None and (entry := entries.pop(at, None)) is not None:
            found.append(entry)
            at = entry.parent
        return tuple(reversed(found))


def derive_session_id(format_: FormatName, given: object, first: Json) -> str:
    """Ours, from theirs; a file that does not say is told apart by its first record."""
    if isinstance(given, str) and given:
        return derived_id(format_, given)
    digest = hashlib.blake2b(canonical_json(first).encode("utf-8", "surrogatepass"), digest_size=16)
    return derived_id(format_, "", digest.hexdigest())


def deduplicate(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Paths that begin alike share entries: each once."""
    return tuple({entry.id: entry for entry in entries}.values())
