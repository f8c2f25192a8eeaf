"""Claude Code's compaction boundaries: what a compaction kept, which results it cleared.

A `compact_boundary` names the messages that stay: `preservedMessages`, or in older files the two
ends of a `preservedSegment`. A `/rewind` that summarises says in the summary's `summarizeMetadata`
which side it summarised. A `microcompact_boundary` names the calls whose results were cleared.
No field is trusted: anything but a list of names counts as an empty list.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from recollect.entries import Compaction, Elided
from recollect.transcripts.json_values import Json, count_or_none, object_or_empty

_UNSAFE = re.compile(r"[^\w.:-]+")
_NAME_CHARACTERS = 80


class ResultLocation(NamedTuple):
    """Where the result of a call is."""

    turn: int
    entry: str
    part: int
    tool: str


def preserved_uuids(boundary: Json) -> tuple[str, ...]:
    """Of the messages that stay, first to last; of a segment only the two ends."""
    about = object_or_empty(boundary.get("compactMetadata"))
    messages = object_or_empty(about.get("preservedMessages"))
    if uuids := _strings(messages.get("uuids")):
        return uuids
    segment = object_or_empty(about.get("preservedSegment"))
    return _strings([segment.get("headUuid"), segment.get("tailUuid")])


def keeps_preceding(summary: Json) -> bool:
    """Whether only what followed some message was summarised, and everything before it stays."""
    return object_or_empty(summary.get("summarizeMetadata")).get("direction") == "from"


def build_compaction(boundary: Json, text: str, first_kept: str | None) -> Compaction:
    about = object_or_empty(boundary.get("compactMetadata"))
    return Compaction(
        status="COMPRESSED" if text else "COMPRESSION_FAILED_EMPTY_SUMMARY",
        snapshot=text,
        first_kept=first_kept if text else None,
        tokens_before=count_or_none(about.get("preTokens")) or 0,
        tokens_after=count_or_none(about.get("postTokens")) or 0,
        trigger="import",
        reason="" if text else "the file has no summary for this boundary",
    )


def cleared_call_ids(boundary: Json) -> tuple[str, ...]:
    """The calls whose results a microcompaction replaced, each once."""
    about = object_or_empty(boundary.get("microcompactMetadata"))
    return tuple(dict.fromkeys(_strings(about.get("compactedToolIds"))))


def build_elision(call: str, location: ResultLocation) -> Elided:
    tool = _safe(location.tool) or "a tool"
    return Elided(
        entry=location.entry,
        parts=(location.part,),
        placeholder=f"[The result of {tool} (call {_safe(call)}) was left out by Claude Code.]",
    )


def _safe(name: str) -> str:
    return _UNSAFE.sub("_", name[:_NAME_CHARACTERS])


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(item for item in value if isinstance(item, str) and item)
