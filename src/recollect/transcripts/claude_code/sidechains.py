"""The subagents in Claude Code's files: whose record is whose, and who called whom.

A subagent's conversation is in a file of its own; or among the records of the session that called
it, marked as a sidechain; or it can only be overheard in that session's progress reports, which
have all but its last words. `extract_sidechains` takes the latter two out of a file. `link_subagents` says of each
subagent which session called it and with which call, where that can be known, and gives both
sessions a note that names the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from recollect.entries import Message, Note, Text, ToolCall, ToolResult, json_text
from recollect.transcripts.claude_code.record_tree import is_subagent
from recollect.transcripts.json_patch import Json
from recollect.transcripts.json_values import string_or_empty
from recollect.transcripts.record_format import get_tag
from recollect.transcripts.subagent_links import NAME, PARENT, SUBAGENT
from recollect.transcripts.transcript import SubagentInfo, Transcript

_CALLERS = ("Task", "Agent")  # the tool's name, before and after it was renamed
_ENVELOPE = ("sessionId", "cwd", "version", "gitBranch")
_BLANK = re.compile(r"\s+")
_WORDS = 80  # characters of a description in a title or a note
_CALL_CHARACTERS = 200


class Sidechain(NamedTuple):
    """The records of a subagent that stand in the file of the session that called it."""

    name: str
    call: str
    values: list[tuple[int, Json]]


def extract_sidechains(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    found = [] if is_subagent([value for _, value in values]) else _sidechains(values)
    names = {aside.name for aside in found}
    return found + [aside for aside in _overheard(values) if aside.name not in names]


def _sidechains(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    """By the subagent's id; where older versions give none, by the record that began it."""
    found = [
        (line, value, uuid)
        for line, value in values
        if value.get("isSidechain") is True and (uuid := string_or_empty(value.get("uuid")))
    ]
    names = _names({uuid: value for _, value, uuid in found})
    groups: dict[str, list[tuple[int, Json]]] = {}
    for line, value, uuid in found:
        apart = names.get(string_or_empty(value.get("parentUuid"))) != names[uuid]
        cut = {**value, "parentUuid": None} if apart else value
        groups.setdefault(names[uuid], []).append((line, cut))
    return [Sidechain(name, "", group) for name, group in groups.items()]


def _names(chained: dict[str, Json]) -> dict[str, str]:
    names: dict[str, str] = {}
    for start in chained:
        walked, at = [], start
        while at not in names:
            names[at] = start  # also where a circle comes back to
            walked.append(at)
            given = string_or_empty(chained[at].get("agentId"))
            above = string_or_empty(chained[at].get("parentUuid"))
            if given or above not in chained:
                names[at] = given or at
                break
            at = above
        names.update((uuid, names[at]) for uuid in walked)
    return names


def _overheard(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    found: dict[str, Sidechain] = {}
    last: dict[str, str] = {}
    for line, value in values:
        data = value.get("data")
        if value.get("type") != "progress" or not isinstance(data, dict):
            continue
        name, message = data.get("agentId"), data.get("message")
        if not (isinstance(name, str) and name and isinstance(message, dict)):
            continue
        if isinstance(uuid := message.get("uuid"), str):
            envelope = {key: value[key] for key in _ENVELOPE if key in value}
            marks = {"parentUuid": last.get(name), "isSidechain": True, "agentId": name}
            call = string_or_empty(value.get("parentToolUseID"))
            aside = found.setdefault(name, Sidechain(name, call, []))
            aside.values.append((line, {**message, **envelope, **marks}))
            last[name] = uuid
    return list(found.values())


class _SubagentCall(NamedTuple):
    """A call of a subagent, and the session that made it."""

    session: str
    prompt: str
    description: str
    kind: str


def link_subagents(main: Transcript, agents: Sequence[Transcript]) -> tuple[Transcript, ...]:
    """The main session and its subagents, in that order, with titles and notes that link them."""
    calls = {id_: call for foreign in (main, *agents) for id_, call in _calls(foreign)}
    answered = _answered((main, *agents), agents, calls)
    title = _short(main.heading or _prompt(main))
    notes: dict[str, list[Note]] = {foreign.session: [] for foreign in (main, *agents)}
    informed = []
    for foreign in agents:
        agent = _known(foreign, main, answered.get(foreign.session, ""), calls)
        what = _short(agent.description or agent.kind or _prompt(foreign)) or "no description"
        heading = f"Agent: {what} (subagent of {title})" if title else f"Agent: {what}"
        informed.append(msgspec.structs.replace(foreign, agent=agent, heading=heading))
        notes[foreign.session].insert(0, _caller_note(agent))
        notes[agent.parent].append(_subagent_note(foreign.session, agent, what))
    if main.agent is not None:
        notes[main.session].insert(0, _caller_note(main.agent))
    return tuple(
        msgspec.structs.replace(foreign, notes=tuple(notes[foreign.session]), subagents=())
        for foreign in (main, *informed)
    )


def _calls(foreign: Transcript) -> Iterator[tuple[str, _SubagentCall]]:
    for body in _messages(foreign):
        for part in body.parts:
            if isinstance(part, ToolCall) and part.name in _CALLERS:
                given = json.loads(part.arguments)
                given = given if isinstance(given, dict) else {}
                fields = ("prompt", "description", "subagent_type")
                yield (
                    part.id,
                    _SubagentCall(
                        foreign.session, *(string_or_empty(given.get(f)) for f in fields)
                    ),
                )


def _answered(
    everyone: Sequence[Transcript], agents: Sequence[Transcript], calls: Mapping[str, _SubagentCall]
) -> dict[str, str]:
    """The call that each subagent answers: as it says itself, or as the call's result says; else
    the first call that no other subagent answers and whose prompt is its first message."""
    told = {session: call for foreign in everyone for session, call in _told(foreign)}
    told |= {each.session: each.agent.call for each in agents if each.agent and each.agent.call}
    taken = set(told.values())
    free: dict[str, list[str]] = {}
    for id_, call in calls.items():
        if id_ not in taken and call.prompt.strip():
            free.setdefault(call.prompt.strip(), []).append(id_)
    for each in agents:
        if each.session not in told and (candidates := free.get(_prompt(each).strip())):
            told[each.session] = candidates.pop(0)
    return told


def _told(foreign: Transcript) -> Iterator[tuple[str, str]]:
    """Which session a result says that it is the answer of."""
    for body in _messages(foreign):
        session = get_tag(NAME, body).get(SUBAGENT) if body.extra else None
        if isinstance(session, str):
            results = (part.call_id for part in body.parts if isinstance(part, ToolResult))
            yield from ((session, call) for call in list(results)[:1])


def _known(
    foreign: Transcript, main: Transcript, call: str, calls: Mapping[str, _SubagentCall]
) -> SubagentInfo:
    agent = foreign.agent or SubagentInfo(parent=main.session)
    made = calls.get(call, _SubagentCall(main.session, "", "", ""))
    return SubagentInfo(
        parent=made.session if made.session != foreign.session else main.session,
        call=call,
        description=agent.description or made.description,
        kind=agent.kind or made.kind,
    )


def _messages(foreign: Transcript) -> Iterator[Message]:
    return (entry.body for entry in foreign.entries if isinstance(entry.body, Message))


def _prompt(foreign: Transcript) -> str:
    """What was first said by a person, or by the agent that called this one."""
    for body in _messages(foreign):
        text = "".join(part.text for part in body.parts if isinstance(part, Text))
        if body.role == "user" and text and not body.extra:
            return text
    return ""


def _short(text: str) -> str:
    line = _BLANK.sub(" ", text[: 4 * _WORDS]).strip()
    return line if len(line) <= _WORDS else f"{line[: _WORDS - 1]}…"


def _caller_note(agent: SubagentInfo) -> Note:
    call = f" by the call {_short(agent.call)}" if agent.call else ""
    text = f"This is a subagent's conversation. It was started{call} in session {agent.parent}."
    return _note(text, {PARENT: agent.parent}, agent.call)


def _subagent_note(session: str, agent: SubagentInfo, what: str) -> Note:
    call = f", started by the call {_short(agent.call)}" if agent.call else ""
    return _note(
        f"The subagent “{what}”{call}, has a session of its own: {session}.",
        {SUBAGENT: session},
        agent.call,
    )


def _note(text: str, link: Json, call: str) -> Note:
    tag = {"header": True, **link} | ({"call": call[:_CALL_CHARACTERS]} if call else {})
    return Note(text=text, extra=json_text({NAME: tag}))
