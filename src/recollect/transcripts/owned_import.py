"""Imports for one of several owners of a store: the same file of two owners is two sessions.

The ids that an importer derives from a file are the same for everybody. For an owner they are
derived once more, with the owner's name, so that a file can neither continue nor branch a session
of somebody else, whatever ids it claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from recollect.entries import Entry, Note
from recollect.store.ids import derived_id
from recollect.transcripts.record_format import rename_entries, rename_entry
from recollect.transcripts.transcript import (
    EntryRun,
    EntryStream,
    MissingEntries,
    Transcript,
    TranscriptBundle,
)


def scope_to_owner(bundle: TranscriptBundle, owner: str) -> TranscriptBundle:
    """The bundle with ids of this owner's own."""
    files = (bundle.main, *bundle.subagents)
    sessions = {
        file.transcript.session: derived_id(file.transcript.session, "owner", owner)
        for file in files
    }
    scoped = [file._replace(transcript=_scope(file.transcript, owner, sessions)) for file in files]
    return TranscriptBundle(scoped[0], tuple(scoped[1:]), bundle.warnings)


def _scope(transcript: Transcript, owner: str, sessions: dict[str, str]) -> Transcript:
    ids = {entry.id: _own_id(entry.id, owner) for entry in transcript.entries}
    renamed = rename_entries(transcript, ids)
    stream = None if transcript.stream is None else _OwnedEntries(transcript.stream, owner)
    entries = tuple(
        msgspec.structs.replace(entry, body=_relink(entry.body, sessions))
        if isinstance(entry.body, Note)
        else entry
        for entry in renamed.entries
    )
    notes = tuple(_relink(note, sessions) for note in renamed.notes)
    session = sessions[transcript.session]
    return msgspec.structs.replace(
        renamed, session=session, entries=entries, notes=notes, is_own=False, stream=stream
    )


def _own_id(id_: str, owner: str) -> str:
    return derived_id(id_, "owner", owner)


class _OwnedEntries:
    """The entries of a large file with ids of an owner's own. They name none but each other."""

    def __init__(self, stream: EntryStream, owner: str) -> None:
        self._stream, self._owner = stream, owner

    def __iter__(self) -> Iterator[Entry]:
        return map(self._rename, self._stream)

    def __len__(self) -> int:
        return len(self._stream)

    @property
    def updated(self) -> int:
        return self._stream.updated

    @property
    def ends_with_leaf(self) -> bool:
        return self._stream.ends_with_leaf

    def find_leaf(self) -> str | None:
        leaf = self._stream.find_leaf()
        return leaf and _own_id(leaf, self._owner)

    def load(self) -> tuple[tuple[Entry, ...], str | None]:
        entries, leaf = self._stream.load()
        return tuple(map(self._rename, entries)), leaf and _own_id(leaf, self._owner)

    def runs(self) -> list[EntryRun]:
        return _rename_runs(self._stream.runs(), self._rename)

    def compare(self, is_held: Callable[[str], bool]) -> MissingEntries:
        found = self._stream.compare(lambda id_: is_held(_own_id(id_, self._owner)))
        return _OwnedMissing(found, self._owner, self._rename)

    def _rename(self, entry: Entry) -> Entry:
        return rename_entry(entry, lambda id_: _own_id(id_, self._owner))


class _OwnedMissing:
    """Those of them that a session lacks."""

    def __init__(self, found: MissingEntries, owner: str, rename: Callable[[Entry], Entry]) -> None:
        self._found, self._rename = found, rename
        self.held, self.count, self.is_closed = found.held, found.count, found.is_closed
        self.ends_with_leaf = found.ends_with_leaf
        self.fork = found.fork and _own_id(found.fork, owner)
        self.leaf = found.leaf and _own_id(found.leaf, owner)

    def runs(self) -> list[EntryRun]:
        return _rename_runs(self._found.runs(), self._rename)

    def main(self) -> Iterator[Entry]:
        return map(self._rename, self._found.main())


def _rename_runs(runs: Iterable[EntryRun], rename: Callable[[Entry], Entry]) -> list[EntryRun]:
    return [
        EntryRun(run.starts_path, ((rename(entry), size) for entry, size in run.entries))
        for run in runs
    ]


def _relink(note: Note, sessions: dict[str, str]) -> Note:
    """A note that names another session of the file, by its new id."""
    extra = note.extra
    for old, new in sessions.items():
        extra = extra.replace(old, new)
    return msgspec.structs.replace(note, extra=extra)
