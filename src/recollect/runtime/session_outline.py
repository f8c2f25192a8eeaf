"""A session in outline: every entry on every branch, in little memory, in the order written.

It is what a list of points to go back to and a tree of branches are made of. Reading it goes in
steps, so that a session of 10,000 entries holds nobody up. Texts are clipped, and as they were
stored: whoever shows them sanitizes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import (
    Body,
    Compaction,
    Entry,
    FileRef,
    InlineData,
    Message,
    Note,
    Request,
    Text,
    ToolCall,
    ToolResult,
)
from recollect.errors import UnknownEntry
from recollect.store.contract import SessionInfo, Store
from recollect.store.session_timeline import timeline_pages
from recollect.tokens import ESTIMATE
from recollect.toolkinds import find_command, find_paths, parse_arguments
from recollect.tools.file_backups import ChangeHistory

MAX_TEXT = 400  # characters kept of an entry
_SUBJECTS = ("pattern", "query", "url")  # what a call is about, if not a command or a file
MAX_PARSED = 100_000  # characters of a call's arguments
START = -1  # the place before all entries

OutlineKind: TypeAlias = Literal[
    "prompt", "reply", "result", "context", "compaction", "request", "change", "note", "other"
]


class OutlineCall(msgspec.Struct, frozen=True, gc=False):
    """A tool call, as far as it is shown in one line."""

    id: str
    name: str
    subject: str  # the file, the command …, else all arguments


class OutlineEntry(msgspec.Struct, frozen=True, gc=False):
    id: str
    parent: int  # its place among the entries; `START`: none
    time: int
    kind: OutlineKind
    text: str = ""
    tokens: int = 0  # estimated
    calls: tuple[OutlineCall, ...] = ()  # of a reply
    answers: tuple[str, ...] = ()  # the calls whose results it has

    @property
    def is_message(self) -> bool:
        """Whether a user sees it as a message."""
        return self.kind in ("prompt", "reply", "result")


class SessionOutline:
    """`path` is the way from the first entry to the head, as places among the entries."""

    def __init__(self, session: SessionInfo) -> None:
        self.session = session
        self.entries: list[OutlineEntry] = []
        self.changes = ChangeHistory()
        self.path: tuple[int, ...] = ()
        self._places: dict[str | None, int] = {None: START}

    def add(self, page: Iterable[Entry]) -> None:
        for entry in page:
            self._places[entry.id] = len(self.entries)
            parent = self._places.get(entry.parent, START)
            outlined = outline_entry(entry, parent)
            if self.changes.add(entry):
                outlined = msgspec.structs.replace(outlined, kind="change")
            self.entries.append(outlined)

    def finish(self) -> None:
        self.path = tuple(self.walk(self.place(self.session.head)))[::-1]

    def place(self, entry: str | None) -> int:
        found = self._places.get(entry)
        if found is None:
            raise UnknownEntry(str(entry), self.session.id)
        return found

    def id_at(self, place: int) -> str | None:
        return None if place == START else self.entries[place].id

    def walk(self, place: int) -> Iterator[int]:
        """This entry, its parent, and so on."""
        while place != START:
            yield place
            place = self.entries[place].parent


async def read_outline(store: Store, session: str) -> SessionOutline:
    outline = SessionOutline(await store.session(session))
    async for page in timeline_pages(store, outline.session):
        outline.add(page)
    outline.finish()
    return outline


def outline_entry(entry: Entry, parent: int) -> OutlineEntry:
    body = entry.body
    if not isinstance(body, Message):
        return OutlineEntry(entry.id, parent, entry.time, _kind_of(body), _text_of(body))
    calls = tuple(
        OutlineCall(part.id, part.name, _subject(part.arguments))
        for part in body.parts
        if isinstance(part, ToolCall)
    )
    answers = tuple(part.call_id for part in body.parts if isinstance(part, ToolResult))
    tokens, text = ESTIMATE.message(body), _said(body)
    return OutlineEntry(
        entry.id, parent, entry.time, _message_kind(body, text, answers), text, tokens, calls,
        answers,
    )  # fmt: skip


def _message_kind(body: Message, text: str, answers: tuple[str, ...]) -> OutlineKind:
    if body.role == "model":
        return "reply"
    if body.context or body.role == "system":
        return "context"
    attached = any(isinstance(part, InlineData | FileRef) for part in body.parts)
    return "prompt" if text.strip() or attached or not answers else "result"


def _said(body: Message) -> str:
    texts = (part.text[:MAX_TEXT] for part in body.parts if isinstance(part, Text))
    said = next(filter(str.strip, texts), "")
    if said or body.role == "model":
        return said
    return next((f"[{p.mime}]" for p in body.parts if isinstance(p, InlineData | FileRef)), "")


def _kind_of(body: Body) -> OutlineKind:
    if isinstance(body, Compaction):
        return "compaction" if body.status == "COMPRESSED" and body.snapshot.strip() else "note"
    if isinstance(body, Request):
        return "request"
    return "note" if isinstance(body, Note) else "other"


def _text_of(body: Body) -> str:
    if isinstance(body, Compaction):
        return f"{body.tokens_before:,} to {body.tokens_after:,} tokens"
    return body.text[:MAX_TEXT] if isinstance(body, Note) else ""


def _subject(arguments: str) -> str:
    # what is very long is not parsed, which would hold others up
    given = (parse_arguments(arguments) if len(arguments) <= MAX_PARSED else None) or {}
    paths = (one.path for one in find_paths(given))
    named = (given.get(name) for name in _SUBJECTS)
    subjects = (value for value in named if isinstance(value, str) and value)
    rest = "" if arguments.strip() == "{}" else arguments
    return (find_command(given) or next(paths, "") or next(subjects, rest))[:MAX_TEXT]
