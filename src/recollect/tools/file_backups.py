"""Backs files up before tools change them, so that a rewind can restore them.

Before a change the file's bytes go into the store and a note into the log; after it a second note
records the result. A crash in between leaves the first note alone: then the result is unknown,
unless the note says what was to be written in one piece. `changes_since` and `plan_restore` are
pure: they read notes and decide. A log may have many branches but there is one folder, so notes
count in the order in which they were written. A file is restored only if it is exactly what the
last of these changes left behind and nobody else changed it between two of them; every other file
is a conflict, reported and left alone. `file_rewind` carries the plan out.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from recollect.entries import Entry, Note, json_text
from recollect.store.contract import Store
from recollect.tools.resolve_path import quote, resolve_path
from recollect.tools.safe_open import WholeFile, read_content
from recollect.tools.tool import ToolFailed
from recollect.workspace.protected_names import find_protected, makes_bare_repository

MAX_NOTE = 40_000  # characters of a note's record that are read; the longest name needs 25,000
_IMPORTED_ID_VERSION = "8"  # the version digit of ids derived from a file, see `store/ids.py`

ChangeStage: TypeAlias = Literal["before", "after", "restored"]
NoteAppender: TypeAlias = Callable[[Note], Awaitable[object]]


class FileState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a file was: the hash of its bytes, and the blob that holds them. No hash: no file."""

    hash: str = ""
    blob: str = ""
    mode: int = 0


class FileChange(NamedTuple):
    """One change of one file, by a tool or by a rewind."""

    path: str
    before: FileState
    after: FileState | None = None  # None: the program ended before it was known
    meant: FileState | None = None  # what was to be written, all of it or nothing

    @property
    def left(self) -> tuple[FileState, ...]:
        """What the file may be afterwards, as far as that is known."""
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
    restores: tuple[FileRestore, ...] = ()
    conflicts: tuple[RestoreConflict, ...] = ()
    unchanged: tuple[str, ...] = ()


class _ChangeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    path: str
    stage: ChangeStage
    state: FileState
    meant: FileState | None = None


class _NoteExtra(msgspec.Struct, frozen=True):
    file_change: _ChangeRecord


# --- decisions: pure ---------------------------------------------------------------------------


class ChangeHistory:
    """The changes that are recorded in entries, which come in the order in which they were written,
    whatever their branch."""

    def __init__(self) -> None:
        self.length = 0  # entries so far
        self._changes: list[FileChange] = []
        self._known: list[int] = []  # of each the first place at which it was complete
        self._open: dict[str, int] = {}

    def add(self, entry: Entry) -> bool:
        """Whether the entry is a record of a change."""
        place, self.length = self.length, self.length + 1
        record = _record_in(entry)
        if record is None:
            return False
        if record.stage == "before":
            self._open[record.path] = len(self._changes)
            self._changes.append(FileChange(record.path, record.state, meant=record.meant))
            self._known.append(place + 1)  # at its first note the file was not changed yet
        elif record.path in self._open:
            number = self._open.pop(record.path)
            self._changes[number] = self._changes[number]._replace(after=record.state)
            self._known[number] = place
        return True

    def since(self, place: int = -1) -> tuple[FileChange, ...]:
        """The changes that were not complete at the entry with this number; -1: all."""
        pairs = zip(self._changes, self._known, strict=True)
        return tuple(change for change, known in pairs if known > place)

    def last_changes(self) -> dict[str, int]:
        """Each changed file, and the place from which on no change of it is to be taken back."""
        last: dict[str, int] = {}
        for change, known in zip(self._changes, self._known, strict=True):
            last[change.path] = max(known, last.get(change.path, 0))
        return last


def changes_since(entries: Iterable[Entry], to: str | None = None) -> tuple[FileChange, ...]:
    """The changes recorded in these entries that were not complete at the entry `to` (None: all).

    Entries come in the order in which they were written, whatever their branch."""
    history = ChangeHistory()
    place = -1 if to is None else None
    for entry in entries:
        if entry.id == to:
            place = history.length
        history.add(entry)
    return () if place is None else history.since(place)


def _record_in(entry: Entry) -> _ChangeRecord | None:
    body = entry.body
    if not isinstance(body, Note) or len(body.extra) > MAX_NOTE:
        return None
    if entry.id[12:13] == _IMPORTED_ID_VERSION:
        return None  # an imported note is about somebody else's folder
    if '"file_change"' not in body.extra:
        return None
    try:
        # json, not msgspec: a file's name may have bytes that are not UTF-8
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
    record = msgspec.to_builtins(_ChangeRecord(path, stage, state, meant))
    return Note(text=f"{what} {quote(path)}", extra=json_text({"file_change": record}))


def plan_restore(
    changes: Sequence[FileChange], current: Mapping[str, FileState | RestoreConflict]
) -> RestorePlan:
    """Decide which files can be restored to what they were before these changes."""
    chains: dict[str, list[FileChange]] = {}
    for change in changes:
        chains.setdefault(change.path, []).append(change)
    restores: list[FileRestore] = []
    conflicts: list[RestoreConflict] = []
    unchanged: list[str] = []
    for path, chain in chains.items():
        target = chain[0].before
        now = current.get(path, RestoreConflict(path, "it was not looked at"))
        if isinstance(now, RestoreConflict):
            conflicts.append(now._replace(target=target))
        elif now.hash == target.hash:
            unchanged.append(path)
        elif why := _find_obstacle(chain, now):
            conflicts.append(RestoreConflict(path, why, target))
        else:
            restores.append(FileRestore(path, now, _with_mode(target, chain, now)))
    return RestorePlan(tuple(restores), tuple(conflicts), tuple(unchanged))


def _find_obstacle(chain: Sequence[FileChange], now: FileState) -> str:
    followed = [*(change.before for change in chain[1:]), now]
    for change, state in zip(chain, followed, strict=True):
        if any(state.hash == left.hash for left in change.left):
            continue
        if change.after is None and change.meant is None:
            return "the program ended while a tool changed it, so what the tool left is not known"
        if state is not now:
            return "somebody else changed it between two changes by tools"
        return f"it was {'changed' if now.hash else 'removed'} since the last tool wrote it"
    if now.hash and not now.mode & 0o222:
        return "it is read-only"
    target = chain[0].before
    return "its content was not backed up" if target.hash and not target.blob else ""


def _with_mode(target: FileState, chain: Sequence[FileChange], now: FileState) -> FileState:
    """The state to restore; a mode that somebody set since is theirs and stays."""
    if not target.hash or not now.hash or any(now.mode == left.mode for left in chain[-1].left):
        return target
    return msgspec.structs.replace(target, mode=now.mode)


# --- files -------------------------------------------------------------------------------------


class FileBackups:
    """The backups of one session. `before_change` is for `ToolContext`; `settle` is called after
    each tool call. `record` appends a note to the log."""

    def __init__(self, store: Store, roots: Sequence[Path], record: NoteAppender) -> None:
        self._store, self._roots, self._record = store, tuple(roots), record
        self._pending: dict[str, FileState] = {}

    async def before_change(self, path: Path) -> None:
        """Back the file up as it is now. When this fails, the file must not be changed."""
        name = str(path)
        await self._settle(name)
        content = await asyncio.to_thread(read_current, self._roots, name)
        blob = await self._store.put(content.data) if content else ""
        state = state_from(content, blob)
        await self._record(change_note(name, "before", state))
        self._pending[name] = state

    async def settle(self) -> None:
        """Record what every file is now that may have changed."""
        for name in tuple(self._pending):
            await self._settle(name)

    async def _settle(self, name: str) -> None:
        if name not in self._pending:
            return
        try:
            state = state_from(await asyncio.to_thread(read_current, self._roots, name))
        except ToolFailed:
            del self._pending[name]  # not readable: the result stays unknown
            return
        await self._record(change_note(name, "after", state))
        self._pending.pop(name, None)


def read_states(
    changes: Iterable[FileChange], roots: Sequence[Path]
) -> dict[str, FileState | RestoreConflict]:
    """What the changed files are now; a conflict where that cannot be found out."""
    return {path: _read_state(roots, path) for path in dict.fromkeys(c.path for c in changes)}


def _read_state(roots: Sequence[Path], path: str) -> FileState | RestoreConflict:
    try:
        refuse_protected(roots, path)
        return state_from(read_current(roots, path))
    except ToolFailed as error:
        for root in roots:
            if not root.is_dir():
                return RestoreConflict(path, f"the folder {quote(root)} is not there")
        return RestoreConflict(path, failure_reason(error, path))


def refuse_protected(roots: Sequence[Path], path: str) -> None:
    """Tools do not change protected files, so a note about one is old or forged."""
    tops = (Path(os.path.realpath(root)) for root in roots)
    inside = (Path(path).relative_to(top) for top in tops if Path(path).is_relative_to(top))
    named = next(inside, Path(path)).as_posix()
    if find_protected(named) is not None or makes_bare_repository(named):
        raise ToolFailed(f"{quote(path)} decides what runs later and is the user's to change")


def failure_reason(error: Exception, path: str) -> str:
    """The fact of a failure, without its remedy, which is meant for a model."""
    fact = str(error).partition("; ")[0]
    name = quote(path)
    if fact.startswith(f"{name}: "):
        return fact[len(name) + 2 :]
    return f"it{fact[len(name) :]}" if fact.startswith(f"{name} ") else fact


def read_current(roots: Sequence[Path], path: str) -> WholeFile | None:
    """The file as it is now, or None; anything but a plain file of the roots fails."""
    with resolve_path(roots, path, follow=False) as resolved:
        exists = resolved.info is not None
    return read_content(roots, path) if exists else None


def state_from(content: WholeFile | None, blob: str = "") -> FileState:
    if content is None:
        return FileState()
    return FileState(content_hash(content.data), blob, content.mode & 0o777)


def content_hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
