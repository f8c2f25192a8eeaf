"""Which call started which subagent.

`link_subagents` finds the session and the call that started each subagent, as far as the files
tell, and gives both sessions a note that names the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import Message, Note, Text, ToolCall, ToolResult, json_text
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.subagent_links import NAME, PARENT, SUBAGENT
from recollect.transcripts.transcript import SubagentInfo, Transcript

_CALLERS = ("Task", "Agent")  # the tool's name, before and after it was renamed
_BLANK = re.compile(r"\s+")
_DESCRIPTION_CHARACTERS = 80  # in a title or a note
_CALL_CHARACTERS = 200


class _SubagentCall(NamedTuple):
    session: str  # that made the call
    prompt: str
    description: str
    kind: str


def link_subagents(main: Transcript, agents: Sequence[Transcript]) -> tuple[Transcript, ...]:
    """The main session and its subagents, in that order, with titles and notes that link them."""
    everyone = (main, *agents)
    calls = {id_: call for transcript in everyone for id_, call in _find_calls(transcript)}
    answered = _match_calls(everyone, agents, calls)
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


def _find_calls(transcript: Transcript) -> Iterator[tuple[str, _SubagentCall]]:
    fields = ("prompt", "description", "subagent_type")
    for body in _messages(transcript):
        for part in body.parts:
            if isinstance(part, ToolCall) and part.name in _CALLERS:
                given = object_or_empty(json.loads(part.arguments))
                texts = (string_or_empty(given.get(field)) for field in fields)
                yield part.id, _SubagentCall(transcript.session, *texts)


def _match_calls(
    everyone: Sequence[Transcript],
    agents: Sequence[Transcript],
    calls: Mapping[str, _SubagentCall],
) -> dict[str, str]:
    """The call that each subagent answers: as it says itself, or as the call's result says; else
    the first call that no other subagent answers and whose prompt is its first message."""
    found = {session: call for transcript in everyone for session, call in _stated(transcript)}
    found |= {a.session: a.subagent.call for a in agents if a.subagent and a.subagent.call}
    taken = set(found.values())
    free: dict[str, list[str]] = {}
    for id_, call in calls.items():
        if id_ not in taken and call.prompt.strip():
            free.setdefault(call.prompt.strip(), []).append(id_)
    for agent in agents:
        if agent.session not in found and (candidates := free.get(_first_prompt(agent).strip())):
            found[agent.session] = candidates.pop(0)
    return found


def _stated(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """The sessions that results name as their origin, each with the call of the result."""
    for body in _messages(transcript):
        session = get_tag(NAME, body).get(SUBAGENT) if body.extra else None
        if isinstance(session, str):
            results = (part.call_id for part in body.parts if isinstance(part, ToolResult))
            yield from ((session, call) for call in list(results)[:1])


def _complete_info(
    transcript: Transcript, main: Transcript, call: str, calls: Mapping[str, _SubagentCall]
) -> SubagentInfo:
    info = transcript.subagent or SubagentInfo(parent=main.session)
    made = calls.get(call, _SubagentCall(main.session, "", "", ""))
    return SubagentInfo(
        parent=made.session if made.session != transcript.session else main.session,
        call=call,
        description=info.description or made.description,
        kind=info.kind or made.kind,
    )


def _messages(transcript: Transcript) -> Iterator[Message]:
    return (entry.body for entry in transcript.entries if isinstance(entry.body, Message))


def _first_prompt(transcript: Transcript) -> str:
    """The first message of the user, or of the agent that called this one."""
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
