"""The formats of other programs' session files: one row of `FORMATS` for each.

Import, export, mirrors, the choices of the command line and the checks of settings and
documentation follow from the table. Reading a file needs no store.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from recollect.errors import BadInput, UnknownFormat
from recollect.transcripts import history_server
from recollect.transcripts.claude_code import session_reader as claude_code
from recollect.transcripts.claude_code.subagent_files import collect_subagents
from recollect.transcripts.collection_pause import pause_collection
from recollect.transcripts.gemini_cli import session_file as gemini_cli
from recollect.transcripts.gemini_cli.message_records import NAME as GEMINI
from recollect.transcripts.gemini_cli.project_folder import with_project_folder
from recollect.transcripts.json_values import Json
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.record_stream import open_records
from recollect.transcripts.session_file_format import SessionFileFormat
from recollect.transcripts.source_file import SourceFile
from recollect.transcripts.subagent_links import NAME as CLAUDE_CODE
from recollect.transcripts.tolerant_json import PROBLEM_LIMIT
from recollect.transcripts.transcript import (
    ImportProblem,
    ReadTranscript,
    Transcript,
    TranscriptBundle,
    TranscriptFile,
)


class TranscriptFormat(msgspec.Struct, frozen=True, kw_only=True):
    name: str  # in commands and settings; ids are derived from it, so it never changes
    description: str  # for the error that lists what can be imported
    record_keys: tuple[frozenset[str], ...]  # an object with all keys of one set is a record
    detect: Callable[[Json], bool]  # whether a record or a whole file is of this format
    read: Callable[[RecordSource], Transcript]
    collect: Callable[[TranscriptFile, Path, ReadTranscript], TranscriptBundle] | None = None
    writer: SessionFileFormat | None = None  # for export and mirrors


# the first format that detects a record has it
FORMATS = (
    TranscriptFormat(
        name=history_server.NAME,
        description="history-server (.json: session_id, messages)",
        record_keys=(frozenset({"role", "content", "timestamp"}),),
        detect=history_server.detect,
        read=history_server.read,
        writer=history_server.FILE_FORMAT,
    ),
    TranscriptFormat(
        name=GEMINI,
        description="Gemini (.json or .jsonl: sessionId, projectHash, messages)",
        record_keys=(
            frozenset({"id", "timestamp", "type"}),
            frozenset({"$set"}),
            frozenset({"$rewindTo"}),
        ),
        detect=gemini_cli.detect,
        read=gemini_cli.read,
        collect=with_project_folder,
        writer=gemini_cli.FILE_FORMAT,
    ),
    TranscriptFormat(
        name=CLAUDE_CODE,
        description="Claude Code (.jsonl: uuid, parentUuid, message)",
        record_keys=(frozenset({"uuid", "type"}),),
        detect=claude_code.detect,
        read=claude_code.read,
        collect=collect_subagents,
    ),
)
RECORD_KEYS = tuple(keys for row in FORMATS for keys in row.record_keys)
EXPORT_FORMATS = tuple(sorted(row.name for row in FORMATS if row.writer))


def writer_of(format_: str) -> SessionFileFormat:
    for row in FORMATS:
        if row.name == format_ and row.writer is not None:
            return row.writer
    known = ", ".join(EXPORT_FORMATS)
    raise BadInput(f"sessions cannot be written as {format_!r}; use one of: {known}")


def read_file(file: SourceFile, name: str) -> Transcript:
    """The session in a file, or `UnknownFormat`."""
    return _read(file, name)[1]


def read_bundle(path: Path) -> TranscriptBundle:
    """The session in a file, with the subagents' sessions in files beside it."""
    with pause_collection():
        source = SourceFile(path)
        row, transcript = _read(source, path.name)
        file = TranscriptFile(transcript, path.name, source)
        return row.collect(file, path, read_file) if row.collect else TranscriptBundle(file)


def _read(file: SourceFile, name: str) -> tuple[TranscriptFormat, Transcript]:
    records = open_records(file, RECORD_KEYS)
    row = _detect(records, name)
    if records.is_streamed:  # it was iterated to the first record that tells its format
        records = open_records(file, RECORD_KEYS)
    transcript = row.read(records)
    problems = records.problems() + transcript.problems
    if len(problems) > 2 * PROBLEM_LIMIT:
        more = ImportProblem(0, f"{len(problems) - PROBLEM_LIMIT:,} more problems")
        problems = (*problems[:PROBLEM_LIMIT], more)
    return row, msgspec.structs.replace(transcript, problems=problems)


def _detect(records: RecordSource, name: str) -> TranscriptFormat:
    for _, record in records:
        for row in FORMATS:
            if row.detect(record):
                return row
    problems = records.problems()
    empty = not len(records) and not problems
    why = "it is empty" if empty else "its format is not recognised"
    if problems:
        why = f"{why} (line {problems[0].line}: {problems[0].reason})"
    known = ", ".join(row.description for row in FORMATS)
    raise UnknownFormat(name, f"{why}; known formats: {known}")
