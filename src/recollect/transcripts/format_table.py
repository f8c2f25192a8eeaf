"""The formats of other programs' session files: one row of `FORMATS` for each.

Import, export, mirrors, the choices of the command line and the checks of settings and
documentation follow from the table. Reading a file needs no store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from recollect.errors import BadInput, UnknownFormat
from recollect.transcripts import history_server
from recollect.transcripts.claude_code import session_reader as claude_code
from recollect.transcripts.claude_code.subagent_files import collect_subagents
from recollect.transcripts.gemini_cli import session_file as gemini_cli
from recollect.transcripts.gemini_cli.message_records import NAME as GEMINI
from recollect.transcripts.gemini_cli.project_folder import with_project_folder
from recollect.transcripts.json_values import Json
from recollect.transcripts.session_file_format import SessionFileFormat
from recollect.transcripts.subagent_links import NAME as CLAUDE_CODE
from recollect.transcripts.tolerant_json import PROBLEM_LIMIT, parse_records, read_bytes
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
    read: Callable[[Sequence[tuple[int, Json]]], Transcript]  # from (line, record)
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
EXPORT_FORMATS = tuple(sorted(row.name for row in FORMATS if row.writer))


def writer_of(format_: str) -> SessionFileFormat:
    for row in FORMATS:
        if row.name == format_ and row.writer is not None:
            return row.writer
    known = ", ".join(EXPORT_FORMATS)
    raise BadInput(f"sessions cannot be written as {format_!r}; use one of: {known}")


def read_transcript(data: bytes, name: str) -> Transcript:
    """The session in a file, or `UnknownFormat`."""
    return _read(data, name)[1]


def read_bundle(path: Path) -> TranscriptBundle:
    """The session in a file, with the subagents' sessions in files beside it."""
    data = read_bytes(path)
    row, transcript = _read(data, path.name)
    file = TranscriptFile(transcript, path.name, data)
    return row.collect(file, path, read_transcript) if row.collect else TranscriptBundle(file)


def _read(data: bytes, name: str) -> tuple[TranscriptFormat, Transcript]:
    keys = tuple(keys for row in FORMATS for keys in row.record_keys)
    records, problems = parse_records(data, keys)
    row = next((row for _, record in records for row in FORMATS if row.detect(record)), None)
    if row is None:
        empty = not data.strip(b" \t\r\n\0\xef\xbb\xbf")
        why = "it is empty" if empty else "its format is not recognised"
        known = ", ".join(row.description for row in FORMATS)
        raise UnknownFormat(name, f"{why}; known formats: {known}")
    transcript = row.read(records)
    problems += transcript.problems
    if len(problems) > 2 * PROBLEM_LIMIT:
        more = ImportProblem(0, f"{len(problems) - PROBLEM_LIMIT:,} more problems")
        problems = (*problems[:PROBLEM_LIMIT], more)
    return row, msgspec.structs.replace(transcript, problems=problems)
