"""A session's file together with the files of its subagents.

Claude Code puts them into `<session>/subagents/` beside `<session>.jsonl`; older versions beside
the session's own file. A subagent that cannot be read gives a warning and does not stop the others.
A subagent's file alone is read in the same way, so that it becomes the same session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from recollect.entries import Message, json_text
from recollect.errors import CannotImport
from recollect.transcripts.claude_code.subagent_calls import link_subagents
from recollect.transcripts.json_values import Json, string_or_empty, too_deep
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.subagent_links import NAME, SUBAGENT
from recollect.transcripts.tolerant_json import FILE_LIMIT, read_bytes
from recollect.transcripts.transcript import (
    ImportProblem,
    ReadTranscript,
    Transcript,
    TranscriptBundle,
    TranscriptFile,
    derive_session_id,
)

FILES_LIMIT = 2_000  # subagents of one session
_META_LIMIT = 65_536
_META_DEPTH = 10
_FILE_NAME = re.compile(r"agent-[\w-]{1,100}\.jsonl", re.ASCII)


def collect_subagents(file: TranscriptFile, path: Path, read: ReadTranscript) -> TranscriptBundle:
    """The session of a file with those of its subagents, linked with each other."""
    main = _with_meta(file.transcript, path)
    warnings: list[str] = []
    files = {main.session: file._replace(transcript=main)}
    for each in _read_files(main, path, read, warnings):
        files.setdefault(each.transcript.session, each)
    inside = [one for each in files.values() for one in each.transcript.subagents if one.entries]
    for transcript in inside:
        # its own file has more than its caller's, which may know the call that it answers
        known = files.setdefault(transcript.session, TranscriptFile(transcript, path.name, None))
        completed = _with_call(known.transcript, transcript)
        files[transcript.session] = known._replace(transcript=completed)
    first, *others = files.values()
    linked = link_subagents(first.transcript, [each.transcript for each in others])
    main_file, *subagents = [
        each._replace(transcript=transcript)
        for each, transcript in zip(files.values(), linked, strict=True)
    ]
    return TranscriptBundle(main_file, tuple(subagents), tuple(warnings))


def _with_call(known: Transcript, inside: Transcript) -> Transcript:
    if known.subagent is None or inside.subagent is None or known.subagent.call:
        return known
    info = msgspec.structs.replace(known.subagent, call=inside.subagent.call)
    return msgspec.structs.replace(known, subagent=info)


def _read_files(
    main: Transcript, main_path: Path, read: ReadTranscript, warnings: list[str]
) -> Iterator[TranscriptFile]:
    total = 0
    paths = _find_files(main, main_path)
    if len(paths) > FILES_LIMIT:
        warnings.append(f"{len(paths) - FILES_LIMIT:,} files of subagents were left out")
    for path in paths[:FILES_LIMIT]:
        try:
            data = read_bytes(path)
            total += len(data)
            if total > FILE_LIMIT:
                raise CannotImport(path.name, "the subagents' files together are too large")
            transcript = read(data, path.name)
            if transcript.subagent is None:
                raise CannotImport(path.name, "it is not a subagent's file")
        except CannotImport as error:
            warnings.append(f"a subagent was left out: {error}")
            continue
        yield TranscriptFile(_with_meta(transcript, path), path.name, data)


def _find_files(main: Transcript, main_path: Path) -> list[Path]:
    """The files in the session's folder, and those beside it that its results name."""
    if main.subagent is not None:
        return []
    try:
        inside = sorted((main_path.with_suffix("") / "subagents").glob("agent-*.jsonl"))
        beside = sorted(main_path.parent.glob("agent-*.jsonl"))
    except OSError:  # a folder that may not be read is as good as none
        return []
    given = json.loads(main.header)[NAME].get("sessionId")
    named = {
        get_tag(NAME, entry.body).get(SUBAGENT)
        for entry in main.entries
        if isinstance(entry.body, Message) and entry.body.extra
    }
    own = [
        path
        for path in beside
        if derive_session_id(NAME, f"{given}/{path.stem.removeprefix('agent-')}", {}) in named
    ]
    return [path for path in (*inside, *own) if _FILE_NAME.fullmatch(path.name)]


def _with_meta(transcript: Transcript, path: Path) -> Transcript:
    """With the content of the small `.meta.json` beside a subagent's file; it is stored with the
    source."""
    beside = path.with_suffix(".meta.json")
    if transcript.subagent is None or not _FILE_NAME.fullmatch(path.name) or not beside.is_file():
        return transcript
    try:
        meta = _parse_meta(read_bytes(beside))
    except (ValueError, RecursionError) as error:
        problem = ImportProblem(0, f"{beside.name} cannot be read ({error!s:.200})")
        return msgspec.structs.replace(transcript, problems=(*transcript.problems, problem))
    header: Json = json.loads(transcript.header)
    header[NAME] |= {"meta": meta}
    info = msgspec.structs.replace(
        transcript.subagent,
        call=string_or_empty(meta.get("toolUseId")) or transcript.subagent.call,
        description=string_or_empty(meta.get("description")),
        kind=string_or_empty(meta.get("agentType")),
    )
    return msgspec.structs.replace(transcript, subagent=info, header=json_text(header))


def _parse_meta(data: bytes) -> Json:
    if len(data) > _META_LIMIT:
        raise ValueError(f"it has {len(data):,} bytes, the limit is {_META_LIMIT:,}")
    meta = json.loads(data)
    if not isinstance(meta, dict) or too_deep(meta, _META_DEPTH):
        raise ValueError("it is not a plain object")
    json_text(meta)  # refuses NaN, which would not be stored
    return meta
