"""Subagents whose records are in the file of the session that called them.

Their records are marked as a sidechain; or the session's progress reports quote them, all but the
last ones. `extract_sidechains` takes both out of a file. Subagents with a file of their own are in
`subagent_files`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recollect.transcripts.claude_code.record_tree import is_subagent
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty

_ENVELOPE = ("sessionId", "cwd", "version", "gitBranch")


class Sidechain(NamedTuple):
    name: str  # the subagent's id, or the uuid of its first record
    call: str  # the call that it answers, if the file says so
    values: list[tuple[int, Json]]  # line, record


def extract_sidechains(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    marked = [] if is_subagent([value for _, value in values]) else _marked(values)
    names = {chain.name for chain in marked}
    return marked + [chain for chain in _quoted(values) if chain.name not in names]


def _marked(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    found = [
        (line, value, uuid)
        for line, value in values
        if value.get("isSidechain") is True and (uuid := string_or_empty(value.get("uuid")))
    ]
    names = _names({uuid: value for _, value, uuid in found})
    groups: dict[str, list[tuple[int, Json]]] = {}
    for line, value, uuid in found:
        is_first = names.get(string_or_empty(value.get("parentUuid"))) != names[uuid]
        cut = {**value, "parentUuid": None} if is_first else value
        groups.setdefault(names[uuid], []).append((line, cut))
    return [Sidechain(name, "", group) for name, group in groups.items()]


def _names(chained: dict[str, Json]) -> dict[str, str]:
    """The subagent of each record: by its id; in older files, which have none, by its first
    record."""
    names: dict[str, str] = {}
    for start in chained:
        walked, at = [], start
        while at not in names:
            names[at] = start  # for a circle, which comes back to it
            walked.append(at)
            given = string_or_empty(chained[at].get("agentId"))
            above = string_or_empty(chained[at].get("parentUuid"))
            if given or above not in chained:
                names[at] = given or at
                break
            at = above
        names.update((uuid, names[at]) for uuid in walked)
    return names


def _quoted(values: Sequence[tuple[int, Json]]) -> list[Sidechain]:
    found: dict[str, Sidechain] = {}
    last: dict[str, str] = {}
    for line, value in values:
        if value.get("type") != "progress":
            continue
        data = object_or_empty(value.get("data"))
        name, message = string_or_empty(data.get("agentId")), data.get("message")
        if name and isinstance(message, dict) and isinstance(uuid := message.get("uuid"), str):
            envelope = {key: value[key] for key in _ENVELOPE if key in value}
            marks = {"parentUuid": last.get(name), "isSidechain": True, "agentId": name}
            call = string_or_empty(value.get("parentToolUseID"))
            chain = found.setdefault(name, Sidechain(name, call, []))
            chain.values.append((line, {**message, **envelope, **marks}))
            last[name] = uuid
    return list(found.values())
