"""Carries out `note`: notes that the model attaches to files, shown again when a file is read.

A note lives in the log, as the call and its result; nothing else is written. `notes_for` reads the
notes on a file from a view, `all_notes` also those before a compaction that the view does not hold.
A path is one line, so that nothing in it can pass for more.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from recollect.entries import Entry, Message, Text, ToolResult
from recollect.errors import RecollectError
from recollect.store.contract import SearchQuery
from recollect.text import clean, one_line
from recollect.toolkinds import has_failed, normalize_path
from recollect.tools.history_lookup import find_abandoned, search_session
from recollect.tools.history_text import format_time
from recollect.tools.tool import ToolContext, ToolFailed
from recollect.view.view import View

MAX_SHOWN_NOTES = 10  # notes that are shown with a file
MAX_NOTE = 2_000  # characters
_MAX_PATH, _MAX_SHOWN_LINE = 1_000, 400
_NOTE_HEADING = "Note on "


class FileNote(NamedTuple):
    path: str
    text: str
    time: int
    entry: str


def write_note(path: str, text: str, context: ToolContext) -> str:
    said = clean(text[: 2 * MAX_NOTE]).strip()
    if not said:
        raise ToolFailed("a note needs some text")
    if len(said) > MAX_NOTE or len(text) > 2 * MAX_NOTE:
        raise ToolFailed(f"a note has at most {MAX_NOTE:,} characters; write down what matters")
    flat = path.strip()
    if not flat or len(flat) > _MAX_PATH or flat != one_line(flat, _MAX_PATH):
        raise ToolFailed("a note needs the path of a file, on one line")
    return f"{_NOTE_HEADING}{normalize_path(context.absolute(flat), str(context.root))}\n{said}"


def notes_for(view: View, path: str, root: str = "") -> tuple[FileNote, ...]:
    """The newest ten notes on a file that a view holds, newest first."""
    held = view.log.entries
    return _newest_notes((held[at] for at in range(view.n - 1, -1, -1)), normalize_path(path, root))


def _newest_notes(entries: Iterable[Entry], path: str) -> tuple[FileNote, ...]:
    return tuple(islice((n for entry in entries for n in _notes_in(entry, path)), MAX_SHOWN_NOTES))


def _notes_in(entry: Entry, path: str) -> list[FileNote]:
    body = entry.body
    if type(body) is not Message:
        return []
    found: list[FileNote] = []
    for part in reversed(body.parts):
        if type(part) is ToolResult and part.name == "note" and not has_failed(part):
            first = part.content[0] if part.content else None
            said = first.text if isinstance(first, Text) else ""
            head, _, text = said[: MAX_NOTE + 2 * _MAX_PATH].partition("\n")
            if head == f"{_NOTE_HEADING}{path}" and text:
                found.append(FileNote(path, text[:MAX_NOTE], entry.time, entry.id))
    return found


async def all_notes(context: ToolContext, path: str) -> tuple[FileNote, ...]:
    """The newest ten notes of this session, also those that a compaction hides from the view."""
    wanted = normalize_path(context.absolute(path), str(context.root))
    view = context.view
    shown = notes_for(view, wanted) if view is not None else ()
    if len(shown) >= MAX_SHOWN_NOTES or context.store is None or '"' in wanted or _holds_all(view):
        return shown
    query = SearchQuery(words=f'"{wanted}"', tool="note", limit=100)
    try:
        here = await context.store.session(context.session)
        hits, _ = await search_session(context.store, here, query)
        abandoned = await find_abandoned(context, [hit.entry.id for hit in hits])
    except RecollectError:
        return shown  # a path without letters cannot be searched for
    known = {one.entry for one in shown}
    older = [hit.entry for hit in hits if hit.entry.id not in abandoned | known]
    older.sort(key=lambda entry: (entry.time, entry.id), reverse=True)
    return (*shown, *_newest_notes(older, wanted))[:MAX_SHOWN_NOTES]


def _holds_all(view: View | None) -> bool:
    """Whether a view holds its whole path, not only the part since a compaction."""
    if view is None:
        return False
    held = view.log.entries
    return view.compaction is None or (
        held[0].parent is None and all(held[i].parent == held[i - 1].id for i in range(1, view.n))
    )


def format_notes(notes: tuple[FileNote, ...]) -> str:
    """The text that shows notes with their file, each on one line."""
    if not notes:
        return ""
    lines = (f"- {format_time(one.time)}: {one_line(one.text, _MAX_SHOWN_LINE)}" for one in notes)
    return "\n".join((f"[your notes on {notes[0].path}, newest first]", *lines))
