"""Files as they were before tools changed them, so that a rewind can bring them back.

Before a change the file's bytes go into the store and a note into the log; after it a second note
says what was left behind. A crash in between leaves the first note alone: then the outcome is not
known, unless the note says what was to be written in one piece. `changes_since` and `plan_restore`
are pure: they read notes and decide. There is one folder however many branches a log has, so notes
count in the order in which they were written. A file is restored only if it is exactly what the
last of these changes left behind and nobody else changed it between two of them; all else is a
conflict, told and left alone. `rewinding.py` carries a plan out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.entries import Entry, Note, json_text
from recollect.errors import HeadMoved
from recollect.store.contract import Store
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import WholeFile, read_content
from recollect.tools.tool import ToolFailed

MAX_NOTE = 40_000  # characters of a note's record that are read; the longest name needs 25,000
_MAX_TRIES = 50  # to append while others append, too
_IMPORTED_ID_VERSION = (
    "8"  # the version digit of ids that are derived from a file, see `store/ids.py`
)

ChangeStage: TypeAlias = Literal["before", "after", "restored"]
NoteAppender: TypeAlias = Callable[[Note], Awaitable[None]]


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a file was: its bytes by their hash, and where the store has them. No hash: no file."""

    hash: str = ""
    blob: str = ""
    mode: int = 0

    def same_content(self, other: FileState) -> bool:
        return self.hash == other.hash


class FileChange(NamedTuple):
    """One change of one file, by a tool or by a rewind."""

    path: str
    before: FileState
    after: FileState | None = None  # none: the program ended before it was known
    meant: FileState | None = None  # what was to be written, all of it or nothing

    @property
    def left(self) -> tuple[FileState, ...]:
        """What the file may have been afterwards, as far as that is known."""
        if self.after is not None:
            return (self.after,)
        return (self.before,) if self.meant is None else (self.before, self.meant)


class RestoreConflict(NamedTuple):
    """A file that is left alone, why, and what it was to be (none: that is not known)."""

    path: str
    why: str
    target: FileState | None = None


class FileRestore(NamedTuple):
    """A file that can be brought back: what it must be now, and what it is to be."""

    path: str
    now: FileState
    target: FileState


class RestorePlan(NamedTuple):
    restorings: tuple[FileRestore, ...] = ()
    conflicts: tuple[RestoreConflict, ...] = ()
    unchanged: tuple[str, ...] = ()


class _ChangeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    stage: ChangeStage
    state: FileState
    meant: FileState | None = None


class _NoteExtra(msgspec.Struct, frozen=True):
    file_change: _ChangeRecord


# --- deciding: pure ----------------------------------------------------------------------------


def changes_since(entries: Iterable[Entry], to: str | None = None) -> tuple[FileChange, ...]:
    """The changes that these entries tell of and that were not complete at the entry `to` (none:
    all of them). Entries come in the order in which they were written, whatever their branch."""
    changes: list[FileChange] = []
    late: list[bool] = []
    open_at: dict[str, int] = {}
    reached = to is None
    for entry in entries:
        was_reached, reached = reached, reached or entry.id == to
        kept = _record_in(entry)
        if kept is None:
            continue
        if kept.stage == "before":
            open_at[kept.path] = len(changes)
            changes.append(FileChange(kept.path, kept.state, meant=kept.meant))
            late.append(reached)  # at its first note the file was not changed yet
        elif kept.path in open_at:
            place = open_at.pop(kept.path)
            changes[place] = changes[place]._replace(after=kept.state)
            late[place] = late[place] or was_reached
    return tuple(change for change, counts in zip(changes, late, strict=True) if counts)


def _record_in(entry: Entry) -> _ChangeRecord | None:
    body = entry.body
    if not isinstance(body, Note) or len(body.extra) > MAX_NOTE:
        return None
    if entry.id[12:13] == _IMPORTED_ID_VERSION:
        return None  # somebody else's file tells of changes to somebody else's folder
    if '"file_change"' not in body.extra:
        return None
    try:
        # json, not msgspec: a file's name may have bytes that are no UTF-8
        return msgspec.convert(json.loads(body.extra), _NoteExtra).file_change
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None  # another program's note, or a forged one


def change_note(
    path: str, stage: ChangeStage, state: FileState, meant: FileState | None = None
) -> Note:
    words = {"before": "about to change", "after": "changed", "restored": "restored"}
    what = words[stage] if meant is None else "about to restore"
    if stage != "before" and not state.hash:
        what = "removed" if stage == "restored" else "changed (it is not there now)"
    kept = msgspec.to_builtins(_ChangeRecord(path, stage, state, meant))
    return Note(text=f"{what} {quote(path)}", extra=json_text({"file_change": kept}))


def plan_restore(
    changes: Sequence[FileChange], current: Mapping[str, FileState | RestoreConflict]
) -> RestorePlan:
    """What bringing files back to before these changes would do, and what it would leave alone."""
    chains: dict[str, list[FileChange]] = {}
    for change in changes:
        chains.setdefault(change.path, []).append(change)
    restorings: list[FileRestore] = []
    conflicts: list[RestoreConflict] = []
    unchanged: list[str] = []
    for path, chain in chains.items():
        target = chain[0].before
        now = current.get(path, RestoreConflict(path, "it was not looked at"))
        if isinstance(now, RestoreConflict):
            conflicts.append(now._replace(target=target))
        elif now.same_content(target):
            unchanged.append(path)
        elif why := _find_obstacle(chain, now):
            conflicts.append(RestoreConflict(path, why, target))
        else:
            restorings.append(FileRestore(path, now, _with_mode(target, chain, now)))
    return RestorePlan(tuple(restorings), tuple(conflicts), tuple(unchanged))


def _find_obstacle(chain: Sequence[FileChange], now: FileState) -> str:
    unknown = "the program ended while a tool changed it, so what the tool left is not known"
    for before, change in pairwise(chain):
        if not any(change.before.same_content(left) for left in before.left):
            if before.after is None and before.meant is None:
                return unknown
            return "somebody else changed it between two changes by tools"
    last = chain[-1]
    if not any(now.same_content(left) for left in last.left):
        if last.after is None and last.meant is None:
            return unknown
        what = "changed" if now.hash else "removed"
        return f"it was {what} since the last tool wrote it"
    if now.hash and not now.mode & 0o222:
        return "it is read-only"
    target = chain[0].before
    return "its content was not kept" if target.hash and not target.blob else ""


def _with_mode(target: FileState, chain: Sequence[FileChange], now: FileState) -> FileState:
    """A mode that somebody set since is theirs and stays."""
    if not target.hash or not now.hash or any(now.mode == left.mode for left in chain[-1].left):
        return target
    return msgspec.structs.replace(target, mode=now.mode)


# --- doing -------------------------------------------------------------------------------------


class FileBackups:
    """Keeps files of one session. `before_change` is for `Place`; `settle` is called after each
    tool call. `record` appends a note to the log; without one the keeper appends at the head."""

    def __init__(
        self, store: Store, session: str, roots: Sequence[Path], record: NoteAppender | None = None
    ) -> None:
        self._store, self._session, self._roots = store, session, tuple(roots)
        self._record = record or self._append
        self._pending: dict[str, FileState] = {}

    async def before_change(self, path: Path) -> None:
        """Keep the file as it is now. When this fails, the file must not be changed."""
        name = str(path)
        await self._settle(name)
        content = await asyncio.to_thread(read_current, self._roots, name)
        blob = await self._store.put(content.data) if content else ""
        state = state_from(content, blob)
        await self._record(change_note(name, "before", state))
        self._pending[name] = state

    async def settle(self) -> None:
        """Say of every file that may have changed what it is now."""
        for name in tuple(self._pending):
            await self._settle(name)

    async def _settle(self, name: str) -> None:
        if name not in self._pending:
            return
        try:
            state = state_from(await asyncio.to_thread(read_current, self._roots, name))
        except ToolFailed:
            del self._pending[name]  # not readable: the outcome stays unknown
            return
        await self._record(change_note(name, "after", state))
        self._pending.pop(name, None)

    async def _append(self, note: Note) -> None:
        await append_note(self._store, self._session, note)


async def append_note(store: Store, session: str, note: Note) -> None:
    """A note after whatever is the head now."""
    for attempt in range(_MAX_TRIES):
        head = (await store.session(session)).head
        try:
            await store.append(session, [note], parent=head)
        except HeadMoved:
            if attempt == _MAX_TRIES - 1:
                raise
        else:
            return


async def read_states(
    changes: Iterable[FileChange], roots: Sequence[Path]
) -> dict[str, FileState | RestoreConflict]:
    """What the changed files are now; a conflict where that cannot be told."""

    def look() -> dict[str, FileState | RestoreConflict]:
        return {path: _read_state(roots, path) for path in dict.fromkeys(c.path for c in changes)}

    return await asyncio.to_thread(look)


def _read_state(roots: Sequence[Path], path: str) -> FileState | RestoreConflict:
    try:
        return state_from(read_current(roots, path))
    except ToolFailed as error:
        for root in roots:
            if not root.is_dir():
                return RestoreConflict(path, f"the folder {quote(root)} is not there")
        return RestoreConflict(path, failure_reason(error, path))


def failure_reason(error: Exception, path: str) -> str:
    """The fact of a failure, without its remedy, which is meant for a model."""
    fact = str(error).partition("; ")[0]
    name = quote(path)
    if fact.startswith(f"{name}: "):
        return fact[len(name) + 2 :]
    return f"it{fact[len(name) :]}" if fact.startswith(f"{name} ") else fact


def read_current(roots: Sequence[Path], path: str) -> WholeFile | None:
    """What is there now, or None; anything that is no plain file of the roots fails."""
    with resolve_path(roots, path, follow=False) as spot:
        there = spot.info is not None
    return read_content(roots, path) if there else None


def state_from(content: WholeFile | None, blob: str = "") -> FileState:
    if content is None:
        return FileState()
    return FileState(content_hash(content.data), blob, content.mode & 0o777)


def content_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
