"""The points of a session that one can go back to, and what going back would change, in lines.

A prompt stands for the place before it. A tool call stands for the place before the reply that made
it; if it is not that reply's first one, for the result of the call before it, so that what this
reply had learned by then is kept. All texts here are safe to show.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from recollect.display.display_text import one_line, pluralize, sanitize
from recollect.entries import handle_of
from recollect.runtime.session_outline import (
    START,
    OutlineCall,
    OutlineEntry,
    SessionOutline,
)
from recollect.runtime.session_rewind import RewindPreview, RewindScope
from recollect.tools.file_rewind import RewindResult
from recollect.tools.resolve_path import quote

FILE_OUTCOMES = ("restored", "removed", "brought_back", "unchanged")  # without conflicts
MAX_LINES = 2_000  # of all differences together
MAX_CALL = 300  # characters
_LEFT = "left as it is"


class RewindPoint(msgspec.Struct, frozen=True):
    """Somewhere to go back to."""

    kind: Literal["prompt", "call"]
    entry: str  # the prompt, or the reply that made the call
    to: str | None  # the entry to go on after; None: the start
    time: int
    text: str  # what was said or called, in one line
    files: int  # that tools have changed since
    calls: int = 0  # of a prompt: how many were made for it


class PointGroup(msgspec.Struct, frozen=True):
    """A prompt and the calls that were made for it, the newest first. A session may begin with
    calls: then there is no prompt."""

    prompt: RewindPoint | None
    calls: tuple[RewindPoint, ...] = ()


def list_points(outline: SessionOutline) -> tuple[PointGroup, ...]:
    """The points on the path to the head, the newest first; also those before a compaction."""
    changed = sorted(outline.changes.last_changes().values())
    groups: list[PointGroup] = []
    prompt: RewindPoint | None = None
    calls: list[RewindPoint] = []

    def close() -> None:
        if prompt is not None or calls:
            done = prompt and msgspec.structs.replace(prompt, calls=len(calls))
            groups.append(PointGroup(done, tuple(reversed(calls))))

    for index, place in enumerate(outline.path):
        entry = outline.entries[place]
        if entry.kind == "prompt":
            close()
            calls = []
            text = one_line(entry.text) or "(no text)"
            prompt = _point(outline, "prompt", entry, entry.parent, text, changed)
        elif entry.calls:
            answers = _answers(outline, index)
            for number, call in enumerate(entry.calls):
                to = _before_call(outline, entry, number, answers)
                calls.append(_point(outline, "call", entry, to, call_text(call), changed))
    close()
    return tuple(reversed(groups))


def _point(
    outline: SessionOutline,
    kind: Literal["prompt", "call"],
    entry: OutlineEntry,
    to: int,
    text: str,
    changed: Sequence[int],
) -> RewindPoint:
    files = len(changed) - bisect_right(changed, to)
    return RewindPoint(kind, entry.id, outline.id_at(to), entry.time, text, files)


def _answers(outline: SessionOutline, index: int) -> dict[str, int]:
    """The places of the results of a reply's calls; ids may come again in later replies."""
    found: dict[str, int] = {}
    for place in outline.path[index + 1 :]:
        entry = outline.entries[place]
        if entry.kind in ("reply", "prompt"):
            break
        found |= dict.fromkeys(entry.answers, place)
    return found


def _before_call(
    outline: SessionOutline, reply: OutlineEntry, number: int, answers: dict[str, int]
) -> int:
    later = {call.id for call in reply.calls[number:]}
    for before in reversed(reply.calls[:number]):
        place = answers.get(before.id)
        if place is not None and later.isdisjoint(outline.entries[place].answers):
            return place
    place = reply.parent
    while place != START and outline.entries[place].kind == "request":
        place = outline.entries[place].parent  # it belongs to the reply
    return place


def call_text(call: OutlineCall) -> str:
    """A call in one line."""
    return one_line(f"{call.name} {call.subject}")[:MAX_CALL]


# --- what it would change ------------------------------------------------------------------------


def describe_preview(preview: RewindPreview, root: Path) -> Iterator[str]:
    """What would change: messages and files, then the differences of files."""
    yield "  conversation  " + _describe_messages(preview)
    if preview.unread:
        yield f"  files         cannot be told: {one_line(preview.unread)}"
    elif not preview.files:
        yield "  files         tools have changed none since then"
    for one in preview.files:
        why = f": {one_line(one.why)}; {_LEFT}" if one.why else ""
        yield f"  {one.outcome:<12}  {display_path(one.path, root)}{why}"
    if preview.commands:
        ran = pluralize(preview.commands, "command")
        yield f"  not undone    what {ran} since then may have changed"
    left = MAX_LINES
    for one in preview.files:
        lines = sanitize(one.diff).rstrip().split("\n")[:left]
        left -= len(lines)
        if one.diff:
            yield ""
            yield f"{display_path(one.path, root)}, from now to then"
            headed = one.diff.startswith("--- ")
            yield from (f"    {line}" for line in (lines[2:] if headed else lines))
    if left <= 0:
        yield "    … the rest of the differences is not shown"


def _describe_messages(preview: RewindPreview, *, done: bool = False) -> str:
    found = []
    if preview.leaving:
        verb = "left" if done else "leaves" if preview.leaving == 1 else "leave"
        where = "the conversation" if done else "it"
        found.append(f"{pluralize(preview.leaving, 'message')} {verb} {where}")
    if preview.coming:
        verb = "came" if done else "comes" if preview.coming == 1 else "come"
        found.append(f"{pluralize(preview.coming, 'message')} {verb} back")
    return ", ".join(found) or "it is there already"


def describe_rewound(
    preview: RewindPreview, result: RewindResult, scope: RewindScope, root: Path
) -> Iterator[str]:
    """What was done, and how to undo it."""
    if scope != "files":
        yield _describe_messages(preview, done=True)
    elif result.done:
        yield "files went back; the conversation stays"
    if scope != "conversation":
        yield from describe_files(result, root)
    elif preview.files:
        yield "files that tools changed since then stayed as they are"
    if scope != "files" or result.done:
        back = "start" if result.back is None else handle_of(result.back)
        yield f"`/rewind to {back} {scope} yes` undoes this; /tree keeps every branch"


def describe_files(found: RewindResult, root: Path) -> Iterator[str]:
    """What happened to each file, or what would."""
    lines = [
        f"  {outcome.replace('_', ' '):<12}  {display_path(path, root)}"
        for outcome in FILE_OUTCOMES
        for path in getattr(found, outcome)
    ]
    yield from lines
    if not lines and not found.conflicts:
        yield "tools have changed no file since then"
    written = {one.path: one.written for one in found.beside}
    for conflict in found.conflicts:
        yield f"  {'conflict':<12}  {display_path(conflict.path, root)}: {conflict.why}; {_LEFT}"
        if conflict.path in written:
            old = display_path(written[conflict.path], root)
            yield f"  {'':<12}  its old content is in {old}"


def display_path(path: str, root: Path) -> str:
    """Relative to the project where possible, on one line."""
    return quote(path.removeprefix(str(root).rstrip(os.sep) + os.sep))
