"""A session's file together with those of its subagents.

Claude Code puts them into `<session>/subagents/` beside `<session>.jsonl`; older versions beside
the session's own file. What cannot be read of one is told and keeps none of the others from
being imported. A subagent's file alone is read in the same way, so that it is the same session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import msgspec

from recollect.entries import Message, json_text
from recollect.errors import CannotImport
from recollect.transcripts.claude_code.sidechains import link_subagents
from recollect.transcripts.json_patch import Json
from recollect.transcripts.json_values import string_or_empty
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.subagent_links import SUBAGENT
from recollect.transcripts.tolerant_json import FILE_LIMIT, ImportProblem, read_bytes, too_deep
from recollect.transcripts.transcript import Transcript, derive_session_id

FILES_LIMIT = 2_000  # subagents of one session
_META_LIMIT = 65_536
_META_DEPTH = 10
_NAME = re.compile(r"agent-[\w-]{1,100}\.jsonl", re.ASCII)

ReadTranscript: TypeAlias = Callable[[bytes, str], Transcript]


class TranscriptFile(NamedTuple):
    """A session, and the bytes it was read from; none when another member's file tells it."""

    foreign: Transcript
    name: str
    data: bytes | None


class TranscriptBundle(NamedTuple):
    main: TranscriptFile
    subagents: tuple[TranscriptFile, ...] = ()
    warnings: tuple[str, ...] = ()  # what was left out, and why


def collect_subagents(
    main: Transcript, data: bytes, place: Path, read: ReadTranscript
) -> TranscriptBundle:
    """The session of a file with those of its subagents, linked with each other."""
    if main.format != "claude-code":
        return TranscriptBundle(TranscriptFile(main, place.name, data))
    main = _with_meta(main, place)
    warnings: list[str] = []
    members = {main.session: TranscriptFile(main, place.name, data)}
    for member in _read_all(main, place, read, warnings):
        members.setdefault(member.foreign.session, member)
    told = [one for each in members.values() for one in each.foreign.subagents if one.entries]
    for foreign in told:
        # a file of its own has more than what others tell; they may know which call it answers
        known = members.setdefault(foreign.session, TranscriptFile(foreign, place.name, None))
        members[foreign.session] = known._replace(foreign=_completed(known.foreign, foreign))
    first, *others = members.values()
    family = link_subagents(first.foreign, [member.foreign for member in others])
    everyone = [
        member._replace(foreign=foreign)
        for member, foreign in zip(members.values(), family, strict=True)
    ]
    return TranscriptBundle(everyone[0], tuple(everyone[1:]), tuple(warnings))


def _completed(known: Transcript, told: Transcript) -> Transcript:
    if known.agent is None or told.agent is None or known.agent.call:
        return known
    agent = msgspec.structs.replace(known.agent, call=told.agent.call)
    return msgspec.structs.replace(known, agent=agent)


def _read_all(
    main: Transcript, place: Path, read: ReadTranscript, warnings: list[str]
) -> Iterator[TranscriptFile]:
    total = 0
    paths = _paths(main, place)
    if len(paths) > FILES_LIMIT:
        warnings.append(f"{len(paths) - FILES_LIMIT:,} files of subagents were left out")
    for path in paths[:FILES_LIMIT]:
        try:
            data = read_bytes(path)
            total += len(data)
            if total > FILE_LIMIT:
                raise CannotImport(path.name, "the subagents' files together are too large")
            foreign = read(data, path.name)
            if foreign.agent is None:
                raise CannotImport(path.name, "it is not a subagent's file")
        except CannotImport as error:
            warnings.append(f"a subagent was left out: {error}")
            continue
        yield TranscriptFile(_with_meta(foreign, path), path.name, data)


def _paths(main: Transcript, place: Path) -> list[Path]:
    """The files in the session's folder, and those beside it that its results speak of."""
    if main.agent is not None:
        return []
    try:
        inside = sorted((place.with_suffix("") / "subagents").glob("agent-*.jsonl"))
        beside = sorted(place.parent.glob("agent-*.jsonl"))
    except OSError:  # a folder that may not be read is as good as none
        return []
    given = json.loads(main.header)[main.format].get("sessionId")
    spoken_of = {
        get_tag(main.format, entry.body).get(SUBAGENT)
        for entry in main.entries
        if isinstance(entry.body, Message) and entry.body.extra
    }
    own = [
        path
        for path in beside
        if derive_session_id(main.format, f"{given}/{path.stem.removeprefix('agent-')}", {})
        in spoken_of
    ]
    return [path for path in (*inside, *own) if _NAME.fullmatch(path.name)]


def _with_meta(foreign: Transcript, place: Path) -> Transcript:
    """With what the small file beside a subagent's says; it is kept with the source."""
    beside = place.with_suffix(".meta.json")
    if foreign.agent is None or not _NAME.fullmatch(place.name) or not beside.is_file():
        return foreign
    try:
        meta = _meta(read_bytes(beside))
    except (ValueError, RecursionError) as error:
        problem = ImportProblem(0, f"{beside.name} cannot be read ({error!s:.200})")
        return msgspec.structs.replace(foreign, problems=(*foreign.problems, problem))
    header: Json = json.loads(foreign.header)
    header[foreign.format] |= {"meta": meta}
    agent = msgspec.structs.replace(
        foreign.agent,
        call=string_or_empty(meta.get("toolUseId")) or foreign.agent.call,
        description=string_or_empty(meta.get("description")),
        kind=string_or_empty(meta.get("agentType")),
    )
    return msgspec.structs.replace(foreign, agent=agent, header=json_text(header))


def _meta(data: bytes) -> Json:
    if len(data) > _META_LIMIT:
        raise ValueError(f"it has {len(data):,} bytes, the limit is {_META_LIMIT:,}")
    meta = json.loads(data)
    if not isinstance(meta, dict) or too_deep(meta, _META_DEPTH):
        raise ValueError("it is not a plain object")
    json_text(meta)  # refuses NaN, which would not be stored
    return meta
