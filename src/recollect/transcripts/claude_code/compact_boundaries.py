"""What Claude Code's boundaries say: what a compaction kept, and which results it left out.

A `compact_boundary` names the messages that stay: `preservedMessages`, or in older files the two
ends of a `preservedSegment`. A `/rewind` that summarises says in the summary's `summarizeMetadata`
which side it summarised. A `microcompact_boundary` names the calls whose results were left out.
Nothing here trusts a field: what is no list of names is an empty one.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.entries import Compaction, Elided
from recollect.transcripts.json_patch import Json

_ODD = re.compile(r"[^\w.:-]+")
_NAME_CHARACTERS = 80


class ResultLocation(NamedTuple):
    """Where the result of a call stands."""

    turn: int
    entry: str
    part: int
    tool: str


def preserved_uuids(boundary: Json) -> tuple[str, ...]:
    """The uuids of the messages that stay, first to last; of a segment only the two ends."""
    about = _object(boundary.get("compactMetadata"))
    messages = _object(about.get("preservedMessages"))
    if names := _names(messages.get("uuids")):
        return names
    segment = _object(about.get("preservedSegment"))
    return _names([segment.get("headUuid"), segment.get("tailUuid")])


def keeps_preceding(summary: Json) -> bool:
    """Whether only what came after a place was summarised, and all before it stays."""
    return _object(summary.get("summarizeMetadata")).get("direction") == "from"


def build_compaction(boundary: Json, text: str, first_kept: str | None) -> Compaction:
    about = _object(boundary.get("compactMetadata"))
    return Compaction(
        status="COMPRESSED" if text else "COMPRESSION_FAILED_EMPTY_SUMMARY",
        snapshot=text,
        first_kept=first_kept if text else None,
        tokens_before=_count(about.get("preTokens")),
        tokens_after=_count(about.get("postTokens")),
        trigger="import",
        reason="" if text else "the file has no summary for this boundary",
    )


def cleared_call_ids(boundary: Json) -> tuple[str, ...]:
    """The calls whose results a microcompaction replaced, each once."""
    about = _object(boundary.get("microcompactMetadata"))
    return tuple(dict.fromkeys(_names(about.get("compactedToolIds"))))


def build_elision(call: str, place: ResultLocation) -> Elided:
    tool = _tame(place.tool) or "a tool"
    return Elided(
        entry=place.entry,
        parts=(place.part,),
        placeholder=f"[The result of {tool} (call {_tame(call)}) was left out by Claude Code.]",
    )


def _tame(name: str) -> str:
    return _ODD.sub("_", name[:_NAME_CHARACTERS])


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(name for name in value if isinstance(name, str) and name)


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < 2**53 else 0
