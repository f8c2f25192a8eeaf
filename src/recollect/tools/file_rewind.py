"""Rewinds a session to an entry, together with the files that its tools changed.

The files come first and the head last, in this order: back up what the files are now; note what is
about to be restored; write each file, all of it or nothing; note what was done; move the head. The
log has every step before it happens, so a crash anywhere loses nothing and the same call again
completes it. A restore is recorded like a tool's change and undone in the same way: rewinding to an
entry on an abandoned branch restores the files of that branch. Where the head is to stay, the notes
are all that is appended. Conflicts are reported and never overwritten; with `beside` their old
content is written to a new file next to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from recollect.entries import Entry
from recollect.errors import Damaged, NotFound, UnknownEntry
from recollect.store.contract import SessionInfo, Store
from recollect.tools.file_backups import (
    FileChange,
    FileRestore,
    FileState,
    RestoreConflict,
    RestorePlan,
    change_note,
    changes_since,
    content_hash,
    failure_reason,
    plan_restore,
    read_current,
    read_states,
    refuse_protected,
    state_from,
)
from recollect.tools.safe_open import remove_file, write_content
from recollect.tools.tool import ToolFailed

COPY_SUFFIX = ".recollect-old"
_MAX_COPIES = 9


class SavedCopy(NamedTuple):
    """The old content of a file in conflict, written to a new file."""

    path: str
    written: str


class RewindResult(NamedTuple):
    """What happened, or with `preview` what would. All paths are as in the notes."""

    session: SessionInfo
    back: str | None  # the entry to rewind to in order to undo this; None: the start
    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()  # created by the session
    brought_back: tuple[str, ...] = ()  # removed by the session
    conflicts: tuple[RestoreConflict, ...] = ()
    unchanged: tuple[str, ...] = ()
    beside: tuple[SavedCopy, ...] = ()

    @property
    def done(self) -> int:
        return len(self.restored) + len(self.removed) + len(self.brought_back)


async def rewind_files(
    store: Store,
    session: SessionInfo | str,
    to: str | None,
    roots: Sequence[Path],
    *,
    preview: bool = False,
    beside: bool = False,
    move_head: bool = True,
) -> RewindResult:
    """Rewind a session to an entry (None: its start), together with the files under the roots;
    without `move_head` only the files, and the session goes on where it is.

    Raises `HeadMoved`, and changes no file, when somebody else has written to the session since
    the caller read it, or meanwhile: call it again."""
    found = await store.session(session) if isinstance(session, str) else session
    timeline = await _timeline(store, found)
    if to is not None and all(entry.id != to for entry in timeline):
        raise UnknownEntry(to, found.id)
    plan = await plan_files(changes_since(timeline, to), store, roots)
    if preview:
        return describe_plan(plan, found, found.head)
    done, now_at, back = await _restore(plan, store, found, roots)
    if move_head:
        moved = await store.rewind(found.id, to, head=now_at)
    else:
        moved = await store.session(found.id)
    rewound = describe_plan(done, moved, found.head if found.head != to else back)
    return await _save_copies(rewound, store, roots) if beside else rewound


async def plan_files(
    changes: Sequence[FileChange], store: Store, roots: Sequence[Path]
) -> RestorePlan:
    """What can be restored of the files now, so that they are as before these changes."""
    plan = plan_restore(changes, await asyncio.to_thread(read_states, changes, roots))
    return await _drop_unreadable(plan, store)


async def _timeline(store: Store, session: SessionInfo) -> tuple[Entry, ...]:
    """Every entry of the session in the order in which they were written; those before a fork are
    another session's."""
    own = await store.tree(session.id)
    if session.forked_from is None:
        return own
    return *await store.path(session.id, at=session.forked_from), *own


async def _drop_unreadable(plan: RestorePlan, store: Store) -> RestorePlan:
    """The plan without what the store cannot return."""
    restores: list[FileRestore] = []
    conflicts = list(plan.conflicts)
    for one in plan.restores:
        try:
            await read_backup(one.target, store)
        except ToolFailed as error:
            conflicts.append(RestoreConflict(one.path, str(error)))
        else:
            restores.append(one)
    return plan._replace(restores=tuple(restores), conflicts=tuple(conflicts))


async def read_backup(state: FileState, store: Store) -> bytes | None:
    """The content of a file in this state; None: no file."""
    if not state.hash:
        return None
    try:
        data = await store.blob(state.blob)
    except (NotFound, Damaged) as error:
        raise ToolFailed(f"its backup cannot be read: {error}") from None
    if content_hash(data) != state.hash:
        raise ToolFailed("its backup is not what the note says")
    return data


async def _restore(
    plan: RestorePlan, store: Store, session: SessionInfo, roots: Sequence[Path]
) -> tuple[RestorePlan, str | None, str | None]:
    """What was done, the session's head after the notes about it, and the first of these notes."""
    plan = await _for_each(plan, lambda one: _back_up_current(one, store, roots))
    if not plan.restores:
        return plan, session.head, session.head
    notes = [change_note(one.path, "before", one.now, one.target) for one in plan.restores]
    about = await store.append(session.id, notes, parent=session.head)
    plan = await _for_each(plan, lambda one: _write_restored(one, store, roots))
    notes = [change_note(one.path, "restored", one.target) for one in plan.restores]
    after = await store.append(session.id, notes, parent=about[-1].id) if notes else about
    return plan, after[-1].id, about[0].id


async def _for_each(
    plan: RestorePlan, step: Callable[[FileRestore], Awaitable[FileRestore]]
) -> RestorePlan:
    """Take a step with each file to restore; those that it fails for become conflicts."""
    restores: list[FileRestore] = []
    conflicts = list(plan.conflicts)
    for one in plan.restores:
        try:
            restores.append(await step(one))
        except ToolFailed as error:
            conflicts.append(RestoreConflict(one.path, failure_reason(error, one.path), one.target))
    return plan._replace(restores=tuple(restores), conflicts=tuple(conflicts))


async def _back_up_current(one: FileRestore, store: Store, roots: Sequence[Path]) -> FileRestore:
    """Store what is going to be overwritten, so that this can be undone."""
    content = await asyncio.to_thread(read_current, roots, one.path)
    if state_from(content).hash != one.now.hash:
        raise ToolFailed("it was changed just now")
    blob = await store.put(content.data) if content else ""
    return one._replace(now=state_from(content, blob))


async def _write_restored(one: FileRestore, store: Store, roots: Sequence[Path]) -> FileRestore:
    """Write only over what was just backed up: `expected` is compared at the last moment."""
    data, now = await read_backup(one.target, store), await read_backup(one.now, store)
    if data is not None:
        mode = one.target.mode or None
        await asyncio.to_thread(write_content, roots, one.path, data, expected=now, mode=mode)
    elif now is not None:
        await asyncio.to_thread(remove_file, roots, one.path, expected=now)
    return one


async def _save_copies(rewound: RewindResult, store: Store, roots: Sequence[Path]) -> RewindResult:
    written: list[SavedCopy] = []
    conflicts: list[RestoreConflict] = []
    for conflict in rewound.conflicts:
        try:
            target = conflict.target or FileState()
            if (data := await read_backup(target, store)) is not None:
                mode = target.mode or None
                name = await asyncio.to_thread(_write_copy, roots, conflict.path, data, mode)
                written.append(SavedCopy(conflict.path, name))
        except ToolFailed as error:
            more = f"nothing was written next to it: {failure_reason(error, conflict.path)}"
            conflicts.append(conflict._replace(why=f"{conflict.why}; {more}"))
        else:
            conflicts.append(conflict)
    return rewound._replace(beside=tuple(written), conflicts=tuple(conflicts))


def _write_copy(roots: Sequence[Path], path: str, data: bytes, mode: int | None) -> str:
    """Write these bytes to a new file next to this one, unless one has them; its name."""
    refuse_protected(roots, path)
    for number in range(1, _MAX_COPIES + 1):
        name = path + COPY_SUFFIX + (f"-{number}" if number > 1 else "")
        there = read_current(roots, name)
        if there is None:
            write_content(roots, name, data, expected=None, mode=mode)
        if there is None or there.data == data:
            return name
    raise ToolFailed(f"there are {_MAX_COPIES} files of that name already")


def describe_plan(plan: RestorePlan, session: SessionInfo, back: str | None) -> RewindResult:
    """The files of a plan by what happens to them."""
    did = plan.restores
    return RewindResult(
        session,
        back,
        restored=tuple(one.path for one in did if one.target.hash and one.now.hash),
        removed=tuple(one.path for one in did if not one.target.hash),
        brought_back=tuple(one.path for one in did if not one.now.hash),
        conflicts=plan.conflicts,
        unchanged=plan.unchanged,
    )
