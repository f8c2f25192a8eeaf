"""Going back in a session: what it would change, and doing it: the conversation, the files that
tools changed, or both.

Nothing is deleted: entries stay on their branch, overwritten content is stored first, and every
result names the entry to rewind to in order to undo it. A preview changes nothing and shows the
difference of each file. A session that moved since it was read raises `HeadMoved`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from recollect.entries import Message, Text
from recollect.errors import Damaged
from recollect.runtime.session_outline import SessionOutline
from recollect.store.contract import SessionInfo, Store
from recollect.text import format_size
from recollect.toolkinds import classify_tool
from recollect.tools.diff import unified_diff
from recollect.tools.file_backups import FileState, read_current
from recollect.tools.file_rewind import (
    RewindResult,
    describe_plan,
    plan_files,
    read_backup,
    rewind_files,
)
from recollect.tools.resolve_path import quote
from recollect.tools.tool import ToolFailed
from recollect.user_text import strip_added_text
from recollect.workspace.sent_files import SentFile, sent_files

MAX_COMPARED_BYTES = 1_000_000  # of a file whose difference is shown
MAX_COMPARED_FILES = 200

RewindScope: TypeAlias = Literal["conversation", "files", "both"]


class FileDifference(msgspec.Struct, frozen=True):
    """What a rewind would do to a file."""

    path: str  # as in the notes
    outcome: Literal["restored", "removed", "brought back", "conflict"]
    why: str = ""  # of a conflict
    diff: str = ""  # from what it is now to what it would be; of a conflict, too


class RewindPreview(msgspec.Struct, frozen=True):
    """What going to an entry would change, as of the head that `session` has."""

    session: SessionInfo
    to: str | None  # the entry to go on after; None: the start
    leaving: int = 0  # messages that are on the path now and would not be
    coming: int = 0  # messages that would be on it again
    commands: int = 0  # that tools ran in those that leave: what they changed is not restored
    files: tuple[FileDifference, ...] = ()
    unread: str = ""  # why it cannot be told what happens to files

    @property
    def conflicts(self) -> int:
        return sum(one.outcome == "conflict" for one in self.files)


def session_roots(session: SessionInfo, others: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The folders whose files are restored: the session's project, else the current one."""
    project = Path(session.project) if session.project else Path.cwd()
    return tuple(dict.fromkeys((project, *others)))


async def preview_files(
    store: Store,
    session: SessionInfo,
    to: str | None,
    roots: Sequence[Path],
    warn: Callable[[str], None],
) -> RewindResult:
    """What restoring the files would do. Damage elsewhere in the session stops no rewind."""
    try:
        return await rewind_files(store, session, to, roots, preview=True)
    except Damaged as error:
        warn(f"cannot tell whether tools have changed files since then: {error}")
        return RewindResult(session, session.head)


async def rewind_session(
    store: Store,
    session: SessionInfo,
    to: str | None,
    scope: RewindScope,
    roots: Sequence[Path],
    *,
    beside: bool = False,
) -> RewindResult:
    """Go to an entry with the conversation, with the files, or with both."""
    if scope == "conversation":
        moved = await store.rewind(session.id, to, head=session.head)
        return RewindResult(moved, session.head)
    move_head = scope == "both"
    return await rewind_files(store, session, to, roots, beside=beside, move_head=move_head)


async def preview_rewind(
    store: Store, outline: SessionOutline, to: str | None, roots: Sequence[Path]
) -> RewindPreview:
    """What going to this entry would change; nothing is stored or written."""
    place = outline.place(to)
    now, then = set(outline.path), set(outline.walk(place))
    entries = outline.entries
    calls = [call for each in now - then for call in entries[each].calls]
    files, unread = await _compare_files(store, outline, place, roots)
    return RewindPreview(
        outline.session,
        to,
        leaving=sum(entries[each].is_message for each in now - then),
        coming=sum(entries[each].is_message for each in then - now),
        commands=sum(classify_tool(call.name) == "shell" for call in calls),
        files=files,
        unread=unread,
    )


async def _compare_files(
    store: Store, outline: SessionOutline, place: int, roots: Sequence[Path]
) -> tuple[tuple[FileDifference, ...], str]:
    try:
        plan = await plan_files(outline.changes.since(place), store, roots)
    except Damaged as error:
        return (), str(error)
    done = describe_plan(plan, outline.session, outline.session.head)
    found: list[FileDifference] = []
    for one in plan.restores:
        outcome: Literal["restored", "removed", "brought back"] = "restored"
        if one.path in done.removed:
            outcome = "removed"
        elif one.path in done.brought_back:
            outcome = "brought back"
        diff = await _compare(store, one.path, one.target, roots, len(found))
        found.append(FileDifference(one.path, outcome, diff=diff))
    for conflict in plan.conflicts:
        diff = ""
        if conflict.target is not None and (conflict.target.blob or not conflict.target.hash):
            diff = await _compare(store, conflict.path, conflict.target, roots, len(found))
        found.append(FileDifference(conflict.path, "conflict", conflict.why, diff))
    return tuple(found), ""


async def _compare(
    store: Store, path: str, target: FileState, roots: Sequence[Path], number: int
) -> str:
    """The difference between a file now and in this state; in words where it has none."""
    if number >= MAX_COMPARED_FILES:
        return ""
    try:
        then = await read_backup(target, store) or b""
        content = await asyncio.to_thread(read_current, roots, path)
    except ToolFailed:
        return ""  # it is a conflict, and says why
    now = content.data if content is not None else b""
    if max(len(now), len(then)) > MAX_COMPARED_BYTES:
        return f"(too large to compare: {format_size(len(now))} now, {format_size(len(then))} then)"
    return await asyncio.to_thread(_text_difference, now, then, quote(path))


def _text_difference(now: bytes, then: bytes, name: str) -> str:
    if b"\0" in now or b"\0" in then:
        return f"(not a text: {format_size(len(now))} now, {format_size(len(then))} then)"
    return unified_diff(now.decode(errors="replace"), then.decode(errors="replace"), name)


class SentPrompt(msgspec.Struct, frozen=True):
    """A prompt as the user sent it: what was typed, and the files that were attached."""

    text: str = ""
    files: tuple[SentFile, ...] = ()


async def read_prompt(store: Store, session: str, entry: str) -> SentPrompt:
    """A prompt to be edited and sent again, without the files that it mentions."""
    _, found = await store.entry(entry, session=session)
    if not isinstance(found.body, Message):
        return SentPrompt()
    texts = [part.text for part in found.body.parts if isinstance(part, Text)]
    typed = (strip_added_text(text) for text in texts[:1])
    text = next(filter(None, typed), texts[0] if texts else "")
    return SentPrompt(text, sent_files(found.body))
