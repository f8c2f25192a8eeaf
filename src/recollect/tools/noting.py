"""What the model keeps for itself: notes on files, a list of what is to do, facts to remember.

A note and a list live in the log, as the call and its result; nothing else is written. `notes_for`
reads the notes on a file back from a view, `kept_notes` also those before a compaction that the
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
from recollect.tools.contract import Place, ToolFailed
from recollect.tools.offered import Status, TodoItem
from recollect.tools.recalling import hits_of_session, left_behind, when
from recollect.view.view import View

NEWEST = 10  # notes that are shown with a file
MOST_NOTE, MOST_FACT, MOST_ITEM = 2_000, 1_000, 240
_LONGEST_PATH, _SHOWN = 1_000, 400
_HEAD = "Note on "


# --- notes on files ----------------------------------------------------------------------------


class FileNote(NamedTuple):
    path: str
    text: str
    time: int
    entry: str


def noted(path: str, text: str, place: Place) -> str:
    """Carries out `note`."""
    said = clean(text[: 2 * MOST_NOTE]).strip()
    if not said:
        raise ToolFailed("a note needs some text")
    if len(said) > MOST_NOTE or len(text) > 2 * MOST_NOTE:
        raise ToolFailed(f"a note has at most {MOST_NOTE:,} characters; write down what matters")
    return f"{_HEAD}{_file(path, str(place.root))}\n{said}"


def _file(path: str, root: str) -> str:
    flat = path.strip()
    if not flat or len(flat) > _LONGEST_PATH or flat != one_line(flat, _LONGEST_PATH):
        raise ToolFailed("a note needs the path of a file, on one line")
    return normalize_path(flat, root)


def notes_for(view: View, path: str, root: str = "") -> tuple[FileNote, ...]:
    """The newest ten notes on a file that a view holds, newest first."""
    held = view.log.entries
    return _newest((held[at] for at in range(view.n - 1, -1, -1)), normalize_path(path, root))


def _newest(entries: Iterable[Entry], path: str) -> tuple[FileNote, ...]:
    return tuple(islice((n for entry in entries for n in _notes_in(entry, path)), NEWEST))


def _notes_in(entry: Entry, path: str) -> list[FileNote]:
    body = entry.body
    if type(body) is not Message:
        return []
    found: list[FileNote] = []
    for part in reversed(body.parts):
        if type(part) is ToolResult and part.name == "note" and not has_failed(part):
            first = part.content[0] if part.content else None
            said = first.text if isinstance(first, Text) else ""
            head, _, text = said[: MOST_NOTE + 2 * _LONGEST_PATH].partition("\n")
            if head == f"{_HEAD}{path}" and text:
                found.append(FileNote(path, text[:MOST_NOTE], entry.time, entry.id))
    return found


async def kept_notes(place: Place, path: str) -> tuple[FileNote, ...]:
    """The newest ten of this session, also those that a compaction hides from the view."""
    wanted = normalize_path(path, str(place.root))
    view = place.view
    shown = notes_for(view, wanted) if view is not None else ()
    if len(shown) >= NEWEST or place.store is None or '"' in wanted or _holds_all(view):
        return shown
    query = SearchQuery(words=f'"{wanted}"', tool="note", limit=100)
    try:
        here = await place.store.session(place.session)
        hits, _ = await hits_of_session(place.store, here, query)
        left = await left_behind(place, [hit.entry.id for hit in hits])
    except RecollectError:
        return shown  # a path without letters cannot be searched for; what is shown is true
    known = {one.entry for one in shown}
    older = [hit.entry for hit in hits if hit.entry.id not in left | known]
    older.sort(key=lambda entry: (entry.time, entry.id), reverse=True)
    return (*shown, *_newest(older, wanted))[:NEWEST]


def _holds_all(view: View | None) -> bool:
    """Whether a view holds its whole path, and not only what it needs since a compaction."""
    if view is None:
        return False
    held = view.log.entries
    return view.compaction is None or (
        held[0].parent is None and all(held[i].parent == held[i - 1].id for i in range(1, view.n))
    )


def as_text(notes: tuple[FileNote, ...]) -> str:
    """Notes as they are shown with their file, each on one line."""
    if not notes:
        return ""
    lines = (f"- {when(one.time)}: {one_line(one.text, _SHOWN)}" for one in notes)
    return "\n".join((f"[your notes on {notes[0].path}, newest first]", *lines))


# --- what is to do -----------------------------------------------------------------------------

_AS_STEP: dict[Status, Literal["open", "doing", "done"]] = {
    "pending": "open",
    "in_progress": "doing",
    "completed": "done",
}


def planned(items: tuple[TodoItem, ...]) -> str:
    """Carries out `todo`."""
    from recollect.snapshot.plan_steps import MAX_STEPS, PlanStep, format_steps

    if len(items) > MAX_STEPS:
        raise ToolFailed(f"a list has at most {MAX_STEPS} items; join those that belong together")
    steps: list[PlanStep] = []
    for number, item in enumerate(items, 1):
        text = one_line(item.content, MOST_ITEM)
        if not text:
            raise ToolFailed(f"item {number} is empty; say what is to be done")
        steps.append(PlanStep(text, _AS_STEP[item.status]))
    doing = [number for number, item in enumerate(items, 1) if item.status == "in_progress"]
    if len(doing) > 1:
        shown = ", ".join(map(str, doing[:8]))
        raise ToolFailed(f"items {shown} are all in_progress; one thing at a time")
    if not steps:
        return "The list is empty."
    done = sum(step.status == "done" for step in steps)
    return "\n".join((f"{done} of {len(steps)} done", *format_steps(tuple(steps))))


# --- what is remembered ------------------------------------------------------------------------


async def remembered(fact: str, save: Callable[[str], Awaitable[str]]) -> str:
    """Carries out `save_memory`."""
    told = one_line(fact, MOST_FACT + 1)
    if not told:
        raise ToolFailed("a fact needs some words")
    if len(told) > MOST_FACT or len(fact) > 4 * MOST_FACT:
        raise ToolFailed(f"a fact has at most {MOST_FACT:,} characters; say it shorter")
    try:
        where = await save(told)
    except (OSError, RecollectError) as error:
        raise ToolFailed(f"the fact was not kept: {one_line(str(error), 300)}") from None
    return f"Remembered in {one_line(where, 300)}: {told}"
