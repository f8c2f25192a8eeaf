"""Imports for one of several owners of a store: the same file of two owners is two sessions.

The ids that an importer derives from a file are the same for everybody. For an owner they are
derived once more, with the owner's name, so that a file can neither continue nor branch a session
of somebody else, whatever ids it claims.
"""

from __future__ import annotations

import msgspec

from recollect.entries import Note
from recollect.store.ids import derived_id
from recollect.transcripts.record_format import rename_entries
from recollect.transcripts.transcript import Transcript, TranscriptBundle


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
    ids = {entry.id: derived_id(entry.id, "owner", owner) for entry in transcript.entries}
    renamed = rename_entries(transcript, ids)
    entries = tuple(
        msgspec.structs.replace(entry, body=_relink(entry.body, sessions))
        if isinstance(entry.body, Note)
        else entry
        for entry in renamed.entries
    )
    notes = tuple(_relink(note, sessions) for note in renamed.notes)
    session = sessions[transcript.session]
    return msgspec.structs.replace(
        renamed, session=session, entries=entries, notes=notes, is_own=False
    )


def _relink(note: Note, sessions: dict[str, str]) -> Note:
    """A note that names another session of the file, by its new id."""
    extra = note.extra
    for old, new in sessions.items():
        extra = extra.replace(old, new)
    return msgspec.structs.replace(note, extra=extra)
