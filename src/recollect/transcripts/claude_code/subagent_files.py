"""A session's file together with the files of its subagents.

Claude Code puts them into `<session>/subagents/` beside `<session>.jsonl`; older versions beside
the session's own file. A subagent that cannot be read gives a warning and does not stop the others.
A subagent's file alone is read in the same way, so that it becomes the same session. As far as the
files tell which session and which call started a subagent, both sessions get a note that names the
other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from recollect.entries import Message, Note, Text, ToolCall, ToolResult, json_text
from recollect.errors import CannotImport
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty, too_deep
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.source_file import SourceFile, read_small_file
from recollect.transcripts.subagent_links import NAME, PARENT, SUBAGENT
from recollect.transcripts.transcript import (
    ImportProblem,
    ReadTranscript,
    SubagentInfo,
    Transcript,
    TranscriptBundle,
    TranscriptFile,
    derive_session_id,
)
from recollect.user_text import find_user_text

FILES_LIMIT = 2_000  # subagents of one session
_META_LIMIT = 65_536
_META_DEPTH = 10
_CALLERS = ("Task", "Agent")  # the tool's name, before and after it was renamed
_BLANK = re.compile(r"\s+")
_DESCRIPTION_CHARACTERS = 80  # in a title or a note
_CALL_CHARACTERS = 200
_FILE_NAME = re.compile(r"agent-[\w-]{1,100}\.jsonl", re.ASCII)


def collect_subagents(file: TranscriptFile, path: Path, read: ReadTranscript) -> TranscriptBundle:
    """The session of a file with those of its subagents, linked with each other."""
    main = _with_meta(file.transcript, path)
    warnings: list[str] = []
    files = {main.session: file._replace(transcript=main)}
    for each in _read_files(main, path, read, warnings):
        files.setdefault(each.transcript.session, each)
    inside = [one for each in files.values() for one in each.transcript.subagents if one.count]
    for transcript in inside:
        # its own file has more than its caller's, which may know the call that it answers
        known = files.setdefault(transcript.session, TranscriptFile(transcript, path.name, None))
        completed = _with_call(known.transcript, transcript)
        files[transcript.session] = known._replace(transcript=completed)
    first, *others = files.values()
    linked = _link(first.transcript, [each.transcript for each in others])
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
    paths = _find_files(main, main_path)
    if len(paths) > FILES_LIMIT:
        warnings.append(f"{len(paths) - FILES_LIMIT:,} files of subagents were left out")
    for path in paths[:FILES_LIMIT]:
        try:
            file = SourceFile(path)
            transcript = read(file, path.name)
            if transcript.subagent is None:
                raise CannotImport(path.name, "it is not a subagent's file")
        except CannotImport as error:
            warnings.append(f"a subagent was left out: {error}")
            continue
        yield TranscriptFile(_with_meta(transcript, path), path.name, file)


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
        get_tag(NAME, body).get(SUBAGENT)
        for body in (_messages(main) if beside else ())  # a large file is read for it once more
        if body.extra
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
        meta = _parse_meta(read_small_file(beside, _META_LIMIT))
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
    meta = json.loads(data)
    if not isinstance(meta, dict) or too_deep(meta, _META_DEPTH):
        raise ValueError("it is not a plain object")
    json_text(meta)  # refuses NaN, which would not be stored
    return meta


def _link(main: Transcript, agents: Sequence[Transcript]) -> tuple[Transcript, ...]:
    """The main session and its subagents, in that order, with titles and notes that link them."""
    if not agents and main.subagent is None:
        return (msgspec.structs.replace(main, subagents=()),)
    everyone = (main, *agents)
    found = [(info, prompt) for each in everyone for info, prompt in _find_calls(each)]
    calls = {info.call: info for info, _ in found}
    answered = _match_calls(everyone, {info.call: prompt.strip() for info, prompt in found})
    title = _shorten(main.heading or _first_prompt(main))
    notes: dict[str, list[Note]] = {transcript.session: [] for transcript in everyone}
    linked = []
    for transcript in agents:
        info = _complete_info(transcript, main, answered.get(transcript.session, ""), calls)
        what = info.description or info.kind or _first_prompt(transcript)
        what = _shorten(what) or "no description"
        heading = f"Agent: {what} (subagent of {title})" if title else f"Agent: {what}"
        linked.append(msgspec.structs.replace(transcript, subagent=info, heading=heading))
        notes[transcript.session].insert(0, _caller_note(info))
        notes[info.parent].append(_subagent_note(transcript.session, info, what))
    if main.subagent is not None:
        notes[main.session].insert(0, _caller_note(main.subagent))
    return tuple(
        msgspec.structs.replace(transcript, notes=tuple(notes[transcript.session]), subagents=())
        for transcript in (main, *linked)
    )


def _find_calls(transcript: Transcript) -> Iterator[tuple[SubagentInfo, str]]:
    """What calls of subagents tell, each with its prompt."""
    fields = ("description", "subagent_type", "prompt")
    for body in _messages(transcript):
        for part in body.parts:
            if isinstance(part, ToolCall) and part.name in _CALLERS:
                given = object_or_empty(json.loads(part.arguments))
                what, kind, prompt = (string_or_empty(given.get(field)) for field in fields)
                yield SubagentInfo(transcript.session, part.id, what, kind), prompt


def _match_calls(everyone: Sequence[Transcript], prompts: Mapping[str, str]) -> dict[str, str]:
    """The call that each subagent answers: as it says itself, or as the call's result says; else
    the first call that no other subagent answers and whose prompt is its first message."""
    found = {session: call for transcript in everyone for session, call in _stated(transcript)}
    agents = everyone[1:]
    found |= {a.session: a.subagent.call for a in agents if a.subagent and a.subagent.call}
    taken = {*found.values()}
    free: dict[str, list[str]] = {}
    for call, prompt in prompts.items():
        if call not in taken and prompt:
            free.setdefault(prompt, []).append(call)
    for agent in agents:
        if agent.session not in found and (candidates := free.get(_first_text(agent).strip())):
            found[agent.session] = candidates.pop(0)
    return found


def _stated(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """The sessions that results name as their origin, each with the call of the result."""
    for body in _messages(transcript):
        session = get_tag(NAME, body).get(SUBAGENT) if body.extra else None
        if isinstance(session, str):
            results = [part.call_id for part in body.parts if isinstance(part, ToolResult)]
            yield from ((session, call) for call in results[:1])


def _complete_info(
    transcript: Transcript, main: Transcript, call: str, calls: Mapping[str, SubagentInfo]
) -> SubagentInfo:
    info = transcript.subagent or SubagentInfo(parent=main.session)
    made = calls.get(call, SubagentInfo(parent=main.session))
    return SubagentInfo(
        parent=made.parent if made.parent != transcript.session else main.session,
        call=call,
        description=info.description or made.description,
        kind=info.kind or made.kind,
    )


def _messages(transcript: Transcript) -> Iterator[Message]:
    return (e.body for e in transcript.each_entry() if isinstance(e.body, Message))


def _first_prompt(transcript: Transcript) -> str:
    """What the user, or the agent that called this one, said first."""
    return next(filter(None, map(find_user_text, _messages(transcript))), "")


def _first_text(transcript: Transcript) -> str:
    """The first message of the user, or of the agent that called this one, as it stands."""
    for body in _messages(transcript):
        text = "".join(part.text for part in body.parts if isinstance(part, Text))
        if body.role == "user" and text and not body.extra:
            return text
    return ""


def _shorten(text: str) -> str:
    line = _BLANK.sub(" ", text[: 4 * _DESCRIPTION_CHARACTERS]).strip()
    fits = len(line) <= _DESCRIPTION_CHARACTERS
    return line if fits else f"{line[: _DESCRIPTION_CHARACTERS - 1]}…"


def _caller_note(info: SubagentInfo) -> Note:
    call = f" by the call {_shorten(info.call)}" if info.call else ""
    text = f"This is a subagent's conversation. It was started{call} in session {info.parent}."
    return _note(text, {PARENT: info.parent}, info.call)


def _subagent_note(session: str, info: SubagentInfo, what: str) -> Note:
    call = f", started by the call {_shorten(info.call)}" if info.call else ""
    text = f"The subagent “{what}”{call}, has a session of its own: {session}."
    return _note(text, {SUBAGENT: session}, info.call)


def _note(text: str, link: Json, call: str) -> Note:
    tag = {"header": True, **link} | ({"call": call[:_CALL_CHARACTERS]} if call else {})
    return Note(text=text, extra=json_text({NAME: tag}))
