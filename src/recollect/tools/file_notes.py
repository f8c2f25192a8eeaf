"""What the model keeps for itself: notes on files, a list of what is to do, facts to remember.

A note and a list live in the log, as the call and its result; nothing else is written. `notes_for`
reads the notes on a file back from a view, `all_notes` also those before a compaction that the
view does not hold. Paths and facts are one line, so that nothing in them can pass for more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import Literal, NamedTuple

from recollect.entries import Entry, Message, Text, ToolResult
from recollect.errors import RecollectError
from recollect.store.contract import SearchQuery
from recollect.text import clean, one_line
from recollect.toolkinds import has_failed, normalize_path
from recollect.tools.builtin import TodoItem, TodoStatus
from recollect.tools.history_lookup import find_abandoned, format_time, search_session
from recollect.tools.tool import ToolContext, ToolFailed
from recollect.view.view import View

MAX_SHOWN_NOTES = 10  # notes that are shown with a file
MAX_NOTE, MAX_FACT, MAX_ITEM = 2_000, 1_000, 240
_MAX_PATH, _MAX_SHOWN_LINE = 1_000, 400
_NOTE_HEADING = "Note on "


# --- notes on files ----------------------------------------------------------------------------


class FileNote(NamedTuple):
    path: str
    text: str
    time: int
    entry: str


def write_note(path: str, text: str, place: ToolContext) -> str:
    """Carries out `note`."""
    said = clean(text[: 2 * MAX_NOTE]).strip()
    if not said:
        raise ToolFailed("a note needs some text")
    if len(said) > MAX_NOTE or len(text) > 2 * MAX_NOTE:
        raise ToolFailed(f"a note has at most {MAX_NOTE:,} characters; write down what matters")
    return f"{_NOTE_HEADING}{_note_path(path, str(place.root))}\n{said}"


def _note_path(path: str, root: str) -> str:
    flat = path.strip()
    if not flat or len(flat) > _MAX_PATH or flat != one_line(flat, _MAX_PATH):
        raise ToolFailed("a note needs the path of a file, on one line")
    return normalize_path(flat, root)


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


async def all_notes(place: ToolContext, path: str) -> tuple[FileNote, ...]:
    """The newest ten of this session, also those that a compaction hides from the view."""
    wanted = normalize_path(path, str(place.root))
    view = place.view
    shown = notes_for(view, wanted) if view is not None else ()
    if len(shown) >= MAX_SHOWN_NOTES or place.store is None or '"' in wanted or _holds_all(view):
        return shown
    query = SearchQuery(words=f'"{wanted}"', tool="note", limit=100)
    try:
        here = await place.store.session(place.session)
        hits, _ = await search_session(place.store, here, query)
        left = await find_abandoned(place, [hit.entry.id for hit in hits])
    except RecollectError:
        return shown  # a path without letters cannot be searched for; what is shown is true
    known = {one.entry for one in shown}
    older = [hit.entry for hit in hits if hit.entry.id not in left | known]
    older.sort(key=lambda entry: (entry.time, entry.id), reverse=True)
    return (*shown, *_newest_notes(older, wanted))[:MAX_SHOWN_NOTES]


def _holds_all(view: View | None) -> bool:
    """Whether a view holds its whole path, and not only what it needs since a compaction."""
    if view is None:
        return False
    held = view.log.entries
    return view.compaction is None or (
        held[0].parent is None and all(held[i].parent == held[i - 1].id for i in range(1, view.n))
    )


def format_notes(notes: tuple[FileNote, ...]) -> str:
    """Notes as they are shown with their file, each on one line."""
    if not notes:
        return ""
    lines = (f"- {format_time(one.time)}: {one_line(one.text, _MAX_SHOWN_LINE)}" for one in notes)
    return "\n".join((f"[your notes on {notes[0].path}, newest first]", *lines))


# --- what is to do -----------------------------------------------------------------------------

_STEP_STATUS: dict[TodoStatus, Literal["open", "doing", "done"]] = {
    "pending": "open",
    "in_progress": "doing",
    "completed": "done",
}


def write_todo(items: tuple[TodoItem, ...]) -> str:
    """Carries out `todo`."""
    from recollect.snapshot.plan_steps import MAX_STEPS, PlanStep, format_steps

    if len(items) > MAX_STEPS:
        raise ToolFailed(f"a list has at most {MAX_STEPS} items; join those that belong together")
    steps: list[PlanStep] = []
    for number, item in enumerate(items, 1):
        text = one_line(item.content, MAX_ITEM)
        if not text:
            raise ToolFailed(f"item {number} is empty; say what is to be done")
        steps.append(PlanStep(text, _STEP_STATUS[item.status]))
    doing = [number for number, item in enumerate(items, 1) if item.status == "in_progress"]
    if len(doing) > 1:
        shown = ", ".join(map(str, doing[:8]))
        raise ToolFailed(f"items {shown} are all in_progress; one thing at a time")
    if not steps:
        return "The list is empty."
    done = sum(step.status == "done" for step in steps)
    return "\n".join((f"{done} of {len(steps)} done", *format_steps(tuple(steps))))


# --- what is remembered ------------------------------------------------------------------------


async def remember_fact(fact: str, save: Callable[[str], Awaitable[str]]) -> str:
    """Carries out `save_memory`."""
    told = one_line(fact, MAX_FACT + 1)
    if not told:
        raise ToolFailed("a fact needs some words")
    if len(told) > MAX_FACT or len(fact) > 4 * MAX_FACT:
        raise ToolFailed(f"a fact has at most {MAX_FACT:,} characters; say it shorter")
    try:
        where = await save(told)
    except (OSError, RecollectError) as error:
        raise ToolFailed(f"the fact was not kept: {one_line(str(error), 300)}") from None
    return f"Remembered in {one_line(where, 300)}: {told}"
