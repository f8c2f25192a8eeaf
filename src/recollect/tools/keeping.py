"""Files as they were before tools changed them, so that a rewind can bring them back.

Before a change the file's bytes go into the store and a note into the log; after it a second note
says what the tool left behind. A crash in between leaves the first note alone: the outcome is then
not known, and nothing is restored over it. `changes_since` and `plan_restore` are pure: they read
notes and decide. A file is restored only if it is exactly what the last tool left behind and nobody
else changed it between two tools; all else is a conflict, told and left alone. `restore` checks
that again at the moment of writing, and touches nothing outside the roots, whatever a note says.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.entries import Entry, Note, json_text
from recollect.errors import HeadMoved, NotFound, StoreError
from recollect.store.contract import Store
from recollect.tools.contract import ToolFailed
from recollect.tools.opening import Content, read_whole, remove_file, write_whole
from recollect.tools.walking import located, quoted

MAX_NOTE = 20_000  # characters of a note's record that are read
_TRIES = 50  # to append while others append, too

Stage: TypeAlias = Literal["before", "after", "restored"]
Record: TypeAlias = Callable[[Note], Awaitable[None]]


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a file was: its bytes by their hash, and where the store has them. No hash: no file."""

    hash: str = ""
    blob: str = ""
    mode: int = 0

    def is_like(self, other: FileState) -> bool:
        return self.hash == other.hash


class Change(NamedTuple):
    """One change of one file by a tool."""

    path: str
    before: FileState
    after: FileState | None = None  # none: the program ended before it was known


class Conflict(NamedTuple):
    path: str
    why: str


class Restoring(NamedTuple):
    """A file that can be brought back: what it must be now, and what it is to be."""

    path: str
    now: FileState
    target: FileState


class Plan(NamedTuple):
    restorings: tuple[Restoring, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unchanged: tuple[str, ...] = ()


class Restored(NamedTuple):
    paths: tuple[str, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


class _Kept(msgspec.Struct, frozen=True):
    path: str
    stage: Stage
    state: FileState


class _Extra(msgspec.Struct, frozen=True):
    file_change: _Kept


# --- deciding: pure ----------------------------------------------------------------------------


def changes_since(entries: Iterable[Entry]) -> tuple[Change, ...]:
    """The changes that notes among these entries tell of, in order. What a restore did is none:
    it led back to where the path of entries was."""
    changes: list[Change] = []
    open_at: dict[str, int] = {}
    for entry in entries:
        kept = _kept_in(entry)
        if kept is None:
            continue
        if kept.stage == "before":
            open_at[kept.path] = len(changes)
            changes.append(Change(kept.path, kept.state))
        elif kept.stage == "after" and kept.path in open_at:
            place = open_at.pop(kept.path)
            changes[place] = changes[place]._replace(after=kept.state)
    return tuple(changes)


def _kept_in(entry: Entry) -> _Kept | None:
    body = entry.body
    if not isinstance(body, Note) or '"file_change"' not in body.extra[:MAX_NOTE]:
        return None
    if len(body.extra) > MAX_NOTE:
        return None
    try:
        # json, not msgspec: a file's name may have bytes that are no UTF-8
        return msgspec.convert(json.loads(body.extra), _Extra).file_change
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None  # another program's note, or a forged one


def note_of(path: str, stage: Stage, state: FileState) -> Note:
    words = {"before": "about to change", "after": "changed", "restored": "restored"}
    what = "changed (it is not there now)" if stage == "after" and not state.hash else words[stage]
    kept = msgspec.to_builtins(_Kept(path, stage, state))
    return Note(text=f"{what} {quoted(path)}", extra=json_text({"file_change": kept}))


def plan_restore(changes: Sequence[Change], current: Mapping[str, FileState]) -> Plan:
    """What bringing files back to before these changes would do, and what it would leave alone."""
    chains: dict[str, list[Change]] = {}
    for change in changes:
        chains.setdefault(change.path, []).append(change)
    restorings: list[Restoring] = []
    conflicts: list[Conflict] = []
    unchanged: list[str] = []
    for path, chain in chains.items():
        now, target = current.get(path), chain[0].before
        if now is not None and now.is_like(target):
            unchanged.append(path)
        elif why := _obstacle(chain, now):
            conflicts.append(Conflict(path, why))
        elif now is not None:
            restorings.append(Restoring(path, now, target))
    return Plan(tuple(restorings), tuple(conflicts), tuple(unchanged))


def _obstacle(chain: Sequence[Change], now: FileState | None) -> str:
    if now is None:
        return "it cannot be read"
    left = chain[0].before
    for change in chain:
        if not change.before.is_like(left):
            return "somebody else changed it between two changes by tools"
        if change.after is None:
            return "the program ended while a tool changed it, so what the tool left is not known"
        left = change.after
    if not now.is_like(left):
        return "it was changed since the last tool wrote it"
    target = chain[0].before
    return "its content was not kept" if target.hash and not target.blob else ""


# --- doing -------------------------------------------------------------------------------------


class FileKeeper:
    """Keeps files of one session. `before_change` is for `Place`; `settle` is called after each
    tool call. `record` appends a note to the log; without one the keeper appends at the head."""

    def __init__(
        self, store: Store, session: str, roots: Sequence[Path], record: Record | None = None
    ) -> None:
        self._store, self._session, self._roots = store, session, tuple(roots)
        self._record = record or self._append
        self._pending: dict[str, FileState] = {}

    async def before_change(self, path: Path) -> None:
        """Keep the file as it is now. When this fails, the file must not be changed."""
        name = str(path)
        await self._settle(name)
        content = await asyncio.to_thread(_content, self._roots, name)
        blob = await self._store.put(content.data) if content else ""
        state = _state(content, blob)
        await self._record(note_of(name, "before", state))
        self._pending[name] = state

    async def settle(self) -> None:
        """Say of every file that may have changed what it is now."""
        for name in tuple(self._pending):
            await self._settle(name)

    async def _settle(self, name: str) -> None:
        if name not in self._pending:
            return
        try:
            state = _state(await asyncio.to_thread(_content, self._roots, name))
        except ToolFailed:
            del self._pending[name]  # not readable: the outcome stays unknown
            return
        await self._record(note_of(name, "after", state))
        self._pending.pop(name, None)

    async def _append(self, note: Note) -> None:
        await append_note(self._store, self._session, note)


async def append_note(store: Store, session: str, note: Note) -> None:
    """A note after whatever is the head now."""
    for attempt in range(_TRIES):
        head = (await store.session(session)).head
        try:
            await store.append(session, [note], parent=head)
        except HeadMoved:
            if attempt == _TRIES - 1:
                raise
        else:
            return


async def current_states(changes: Iterable[Change], roots: Sequence[Path]) -> dict[str, FileState]:
    """What the changed files are now. One that cannot be read is left out."""

    def look() -> dict[str, FileState]:
        found: dict[str, FileState] = {}
        for path in {change.path for change in changes}:
            try:
                found[path] = _state(_content(roots, path))
            except ToolFailed:
                continue
        return found

    return await asyncio.to_thread(look)


async def restore(
    plan: Plan, store: Store, roots: Sequence[Path], record: Record | None = None
) -> Restored:
    """Do what was planned. What a file is now is kept before it goes, and told to `record`."""
    done: list[str] = []
    conflicts = list(plan.conflicts)
    for restoring in plan.restorings:
        try:
            await _restore_one(restoring, store, roots)
        except (ToolFailed, NotFound, StoreError) as error:
            conflicts.append(Conflict(restoring.path, str(error)))
            continue
        done.append(restoring.path)
        if record is not None:
            await record(note_of(restoring.path, "restored", restoring.target))
    return Restored(tuple(done), tuple(conflicts))


async def _restore_one(restoring: Restoring, store: Store, roots: Sequence[Path]) -> None:
    path, target = restoring.path, restoring.target
    content = await asyncio.to_thread(_content, roots, path)
    if not _state(content).is_like(restoring.now):
        raise ToolFailed("it was changed just now")
    now = content.data if content else None
    if now is not None:
        await store.put(now)
    if target.hash:
        data = await store.blob(target.blob)
        if _hash(data) != target.hash:
            raise ToolFailed("what was kept is not what the note says")
        await asyncio.to_thread(
            write_whole, roots, path, data, expected=now, mode=target.mode or None
        )
    elif now is not None:
        await asyncio.to_thread(remove_file, roots, path, expected=now)


def _content(roots: Sequence[Path], path: str) -> Content | None:
    """What is there now, or None; anything that is no plain file of the roots fails."""
    with located(roots, path, follow=False) as spot:
        there = spot.info is not None
    return read_whole(roots, path) if there else None


def _state(content: Content | None, blob: str = "") -> FileState:
    if content is None:
        return FileState()
    return FileState(_hash(content.data), blob, content.mode & 0o777)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
