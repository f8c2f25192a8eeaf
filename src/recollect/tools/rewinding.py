"""A session goes back to an entry, and the files that its tools changed go with it.

The files come first and the head last, in this order: keep what the files are now; note what is
about to be restored; write each file, all of it or nothing; note what was done; move the head. The
log knows every step before it happens, so a crash anywhere loses nothing and the same call again
completes it. What a restore did is a change like a tool's: it is undone in the same way, and
rewinding to an entry that was left behind brings back what the files were there. What cannot be
restored is told, never overwritten; `beside` writes what it was into a new file next to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recollect.entries import Entry
from recollect.errors import Damaged, NotFound, UnknownEntry
from recollect.store.contract import SessionInfo, Store
from recollect.tools.contract import ToolFailed
from recollect.tools.keeping import (
    Conflict,
    FileState,
    Plan,
    Restoring,
    changes_since,
    content_of,
    current_states,
    hash_of,
    note_of,
    plan_restore,
    reason_of,
    state_of,
)
from recollect.tools.opening import remove_file, write_whole

BESIDE = ".recollect-old"
_NAMES_BESIDE = 9


class Beside(NamedTuple):
    """What a file in conflict was, written into a new file."""

    path: str
    written: str


class Rewound(NamedTuple):
    """What happened, or with `preview` what would. All paths are as the notes have them."""

    session: SessionInfo
    back: str | None  # the entry to rewind to if this is to be undone; none: the start
    restored: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()  # made by the session
    brought_back: tuple[str, ...] = ()  # removed by the session
    conflicts: tuple[Conflict, ...] = ()
    unchanged: tuple[str, ...] = ()
    beside: tuple[Beside, ...] = ()

    @property
    def done(self) -> int:
        return len(self.restored) + len(self.removed) + len(self.brought_back)


async def rewind_files(
    store: Store,
    session: str,
    to: str | None,
    roots: Sequence[Path],
    *,
    preview: bool = False,
    beside: bool = False,
) -> Rewound:
    """Rewind a session to an entry (none: its start), together with the files under the roots.

    Raises `HeadMoved` when somebody else writes to the session meanwhile: call it again."""
    found = await store.session(session)
    timeline = await _timeline(store, found)
    if to is not None and all(entry.id != to for entry in timeline):
        raise UnknownEntry(to, found.id)
    changes = changes_since(timeline, to)
    plan = plan_restore(changes, await current_states(changes, roots))
    plan = await _what_was_kept(plan, store)
    if preview:
        return _told(plan, found, found.head)
    done, now_at, back = await _restored(plan, store, found, roots)
    moved = await store.rewind(found.id, to, head=now_at)
    rewound = _told(done, moved, found.head if found.head != to else back)
    return await _with_beside(rewound, store, roots) if beside else rewound


async def _timeline(store: Store, session: SessionInfo) -> tuple[Entry, ...]:
    """Every entry of the session in the order in which they were written. A fork's beginning was
    written by another session."""
    own = await store.tree(session.id)
    if session.forked_from is None:
        return own
    return *await store.path(session.id, at=session.forked_from), *own


async def _what_was_kept(plan: Plan, store: Store) -> Plan:
    """The plan without what the store cannot give back."""
    restorings: list[Restoring] = []
    conflicts = list(plan.conflicts)
    for one in plan.restorings:
        try:
            await _kept(one.target, store)
        except ToolFailed as error:
            conflicts.append(Conflict(one.path, str(error)))
        else:
            restorings.append(one)
    return plan._replace(restorings=tuple(restorings), conflicts=tuple(conflicts))


async def _kept(state: FileState, store: Store) -> bytes | None:
    if not state.hash:
        return None
    try:
        data = await store.blob(state.blob)
    except (NotFound, Damaged) as error:
        raise ToolFailed(f"what was kept of it cannot be read: {error}") from None
    if hash_of(data) != state.hash:
        raise ToolFailed("what was kept is not what the note says")
    return data


async def _restored(
    plan: Plan, store: Store, session: SessionInfo, roots: Sequence[Path]
) -> tuple[Plan, str | None, str | None]:
    """What was done, where the session stands after the notes of it, and the first of them."""
    todo: list[Restoring] = []
    conflicts = list(plan.conflicts)
    for one in plan.restorings:
        try:
            todo.append(await _with_now_kept(one, store, roots))
        except ToolFailed as error:
            conflicts.append(Conflict(one.path, reason_of(error, one.path), one.target))
    if not todo:
        return plan._replace(restorings=(), conflicts=tuple(conflicts)), session.head, session.head
    notes = [note_of(one.path, "before", one.now, one.target) for one in todo]
    about = await store.append(session.id, notes, parent=session.head)
    done: list[Restoring] = []
    for one in todo:
        try:
            await _write(one, store, roots)
        except ToolFailed as error:
            conflicts.append(Conflict(one.path, reason_of(error, one.path), one.target))
        else:
            done.append(one)
    notes = [note_of(one.path, "restored", one.target) for one in done]
    after = await store.append(session.id, notes, parent=about[-1].id) if notes else about
    made = plan._replace(restorings=tuple(done), conflicts=tuple(conflicts))
    return made, after[-1].id, about[0].id


async def _with_now_kept(one: Restoring, store: Store, roots: Sequence[Path]) -> Restoring:
    """What is going to be overwritten is in the store before, so that this can be undone."""
    content = await asyncio.to_thread(content_of, roots, one.path)
    if not state_of(content).is_like(one.now):
        raise ToolFailed("it was changed just now")
    blob = await store.put(content.data) if content else ""
    return one._replace(now=state_of(content, blob))


async def _write(one: Restoring, store: Store, roots: Sequence[Path]) -> None:
    """Only over what was kept a moment ago: `expected` is compared at the last moment."""
    data, now = await _kept(one.target, store), await _kept(one.now, store)
    if data is not None:
        mode = one.target.mode or None
        await asyncio.to_thread(write_whole, roots, one.path, data, expected=now, mode=mode)
    elif now is not None:
        await asyncio.to_thread(remove_file, roots, one.path, expected=now)


async def _with_beside(rewound: Rewound, store: Store, roots: Sequence[Path]) -> Rewound:
    written: list[Beside] = []
    conflicts: list[Conflict] = []
    for conflict in rewound.conflicts:
        try:
            data = await _kept(conflict.target or FileState(), store)
            if data is not None and conflict.target is not None:
                mode = conflict.target.mode or None
                name = await asyncio.to_thread(_put_beside, roots, conflict.path, data, mode)
                written.append(Beside(conflict.path, name))
        except ToolFailed as error:
            more = f"nothing was written beside it: {reason_of(error, conflict.path)}"
            conflicts.append(conflict._replace(why=f"{conflict.why}; {more}"))
        else:
            conflicts.append(conflict)
    return rewound._replace(beside=tuple(written), conflicts=tuple(conflicts))


def _put_beside(roots: Sequence[Path], path: str, data: bytes, mode: int | None) -> str:
    """The name of a file next to this one that has these bytes; nothing is overwritten."""
    for number in range(1, _NAMES_BESIDE + 1):
        name = path + BESIDE + (f"-{number}" if number > 1 else "")
        there = content_of(roots, name)
        if there is None:
            write_whole(roots, name, data, expected=None, mode=mode)
        if there is None or there.data == data:
            return name
    raise ToolFailed(f"there are {_NAMES_BESIDE} files of that name already")


def _told(plan: Plan, session: SessionInfo, back: str | None) -> Rewound:
    did = plan.restorings
    return Rewound(
        session,
        back,
        restored=tuple(one.path for one in did if one.target.hash and one.now.hash),
        removed=tuple(one.path for one in did if not one.target.hash),
        brought_back=tuple(one.path for one in did if not one.now.hash),
        conflicts=plan.conflicts,
        unchanged=plan.unchanged,
    )
