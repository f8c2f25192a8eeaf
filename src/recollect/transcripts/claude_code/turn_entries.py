"""The entries of Claude Code's turns, made one turn at a time from records that are read again.

The entries of a turn follow from its records, from the entry before it, and from what is remembered
of the turns above it: little, because a compaction and an elision name earlier entries by their
ids. So they can be made in any order that has parents first, as often as necessary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from recollect.codecs.foreign_json import read_count
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Part,
    ToolResult,
    Usage,
    json_text,
)
from recollect.store.ids import derived_id
from recollect.tokens import believe_usage
from recollect.transcripts.claude_code.content_blocks import joined_text, parse_parts
from recollect.transcripts.claude_code.record_index import (
    ASSISTANT,
    BOUNDARY,
    MICROCOMPACT,
    NO_TIME,
    SUMMARY,
    USER,
    CallNames,
)
from recollect.transcripts.claude_code.record_tree import RecordTree
from recollect.transcripts.json_values import (
    Json,
    canonical_json,
    count_or_none,
    object_or_empty,
    strings_in,
)
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.subagent_links import NAME, SUBAGENT
from recollect.transcripts.transcript import derive_session_id
from recollect.transcripts.turn_walk import PrecedingEntry
from recollect.user_text import find_context

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "refusal": "safety",
}
# a hostile file must not grow into a huge session by snapshots that repeat each other
_REPEATED_CHARACTERS = 200_000
_REPEATING_COMPACTIONS = 200
_UNSAFE = re.compile(r"[^\w.:-]+")  # in names that a placeholder shows

_MESSAGES = (USER, ASSISTANT)
_EDITS = (BOUNDARY, SUMMARY, MICROCOMPACT)


class _LoadedRecord(NamedTuple):
    kind: int
    time: int  # `NO_TIME` if it has none
    value: Json
    message: Json

    @property
    def content(self) -> object:
        return self.message.get("content")


_EntryDraft: TypeAlias = tuple[Body, list[_LoadedRecord]]  # with what it was made from


class _ResultLocation(NamedTuple):
    """Where the result of a call is."""

    turn: int
    entry: str
    part: int
    tool: str


class TurnEntries:
    """Implements `turn_walk.TurnBuilder`."""

    def __init__(self, records: RecordSource, tree: RecordTree, session: str, start: int) -> None:
        self._records, self.tree, self._session, self._start = records, tree, session, start
        self._needed = frozenset(tree.kept.values())  # turns that a compaction names
        self._starts: dict[int, str] = {}  # the first entry of each of those
        self._compactions: dict[int, Compaction] = {}  # of those that are one
        self._results: dict[str, _ResultLocation] = {}  # by the call, if elisions name them
        self._elides = MICROCOMPACT in tree.index.kinds
        self._edits = any(kind in tree.index.kinds for kind in _EDITS)
        compactions = (turn for turn in tree.order if tree.compacts(turn))
        self._ranks = {turn: rank for rank, turn in enumerate(compactions) if turn in tree.kept}

    def build(self, turn: int, above: PrecedingEntry | None) -> list[Entry]:
        members = [self._load(record) for record in self.tree.members(turn)]
        drafts = self._draft_edits(turn, members) if self._edits else []
        entries: list[Entry] = []
        parent, last = (above.id, above.time) if above else (None, self._start)
        for body, sources in drafts or _draft_messages(members, self.tree.index.calls):
            text = "\n".join([canonical_json(source.value) for source in sources])
            id_ = derived_id(NAME, self._session, parent or "", text)
            last = last if sources[0].time == NO_TIME else sources[0].time
            entries.append(Entry(id_, parent, last, body))
            parent = id_
        if turn in self._needed or self._elides:
            self._remember(turn, entries)
        return entries

    def size(self, turn: int) -> int:
        size_of, numbers = self._records.size, self.tree.index.numbers
        return sum([size_of(numbers[record]) for record in self.tree.members(turn)])

    def _load(self, record: int) -> _LoadedRecord:
        index = self.tree.index
        value = self._records.load(index.numbers[record])
        message = object_or_empty(value.get("message"))
        return _LoadedRecord(index.kinds[record], index.times[record], value, message)

    def _remember(self, turn: int, entries: Sequence[Entry]) -> None:
        """What later entries refer to."""
        if turn in self._needed and entries:
            self._starts[turn] = entries[0].id
            if isinstance(first := entries[0].body, Compaction):
                self._compactions[turn] = first
        for entry in entries if self._elides else ():
            if isinstance(entry.body, Message) and entry.body.role == "user":
                for position, part in enumerate(entry.body.parts):
                    if isinstance(part, ToolResult):
                        location = _ResultLocation(turn, entry.id, position, part.name)
                        self._results.setdefault(part.call_id, location)

    def _draft_edits(self, turn: int, members: Sequence[_LoadedRecord]) -> list[_EntryDraft]:
        """The one body of a turn that is a compaction or a microcompaction."""
        if all(member.kind in _MESSAGES for member in members):
            return []
        boundary = next((m for m in members if m.kind == BOUNDARY), None)
        summary = next((m for m in members if m.kind == SUMMARY), None)
        if boundary is not None or summary is not None:
            sources = [member for member in (boundary, summary) if member]
            kept, earlier = self._kept_by(turn)
            text = joined_text(summary.content) if summary else ""
            text = f"{earlier}\n\n{text}" if earlier and text else text
            about = boundary.value if boundary else {}
            return [(_build_compaction(about, text, kept), sources)]
        items = [
            (_build_elision(call, location), member)
            for member in members
            if member.kind == MICROCOMPACT
            for call in dict.fromkeys(_cleared_call_ids(member.value))
            if (location := self._results.get(call)) and self.tree.is_above(location.turn, turn)
        ]
        if not items:
            return []
        elide = Elide(rule="import", items=tuple(item for item, _ in items))
        return [(elide, [items[0][1]])]

    def _kept_by(self, turn: int) -> tuple[str | None, str]:
        """The first entry that a compaction keeps. If that is an earlier compaction, also its
        snapshot and what it kept: only the newest snapshot is shown, so that one has to hold
        both."""
        kept = self.tree.kept.get(turn)
        if kept is None:
            return None, ""
        earlier = self._compactions.get(kept)
        if earlier is None:
            return self._starts.get(kept), ""
        short = len(earlier.snapshot) <= _REPEATED_CHARACTERS
        repeated = short and self._ranks[turn] <= _REPEATING_COMPACTIONS
        return earlier.first_kept or self._starts[kept], earlier.snapshot if repeated else ""


def _build_compaction(boundary: Json, text: str, first_kept: str | None) -> Compaction:
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


def _cleared_call_ids(boundary: Json) -> tuple[str, ...]:
    """The calls whose results a microcompaction replaced."""
    return strings_in(object_or_empty(boundary.get("microcompactMetadata")).get("compactedToolIds"))


def _build_elision(call: str, location: _ResultLocation) -> Elided:
    tool, call = (_UNSAFE.sub("_", name[:80]) for name in (location.tool, call))
    text = f"[The result of {tool or 'a tool'} (call {call}) was left out by Claude Code.]"
    return Elided(entry=location.entry, parts=(location.part,), placeholder=text)


def _draft_messages(members: Sequence[_LoadedRecord], tool_names: CallNames) -> list[_EntryDraft]:
    """The bodies of any other turn: the reply, then each user's record."""
    drafts: list[_EntryDraft] = []
    replies = [member for member in members if member.kind == ASSISTANT]
    if len(replies) == len(members):
        return [(_build_reply(replies), replies)]
    if replies:
        drafts.append((_build_reply(replies), replies))
    answered: set[ToolResult] = set()
    for member in members:
        if member.kind == USER:
            parts = parse_parts(member.content, tool_names.get)
            # providers refuse a result that is sent twice
            parts = [part for part in parts if part not in answered] if answered else parts
            answered.update([part for part in parts if isinstance(part, ToolResult)])
            if parts or not replies:
                context = find_context(parts, added=member.value.get("isMeta") is True)
                extra = _extra(member.value)
                message = Message(role="user", parts=tuple(parts), context=context, extra=extra)
                drafts.append((message, [member]))
    return drafts


def _extra(record: Json) -> str:
    """Empty for most: entries without it load many times faster, and the source has everything."""
    result = record.get("toolUseResult")
    tag: Json = {"isMeta": True} if record.get("isMeta") is True else {}
    agent = result.get("agentId") if isinstance(result, dict) else None
    if isinstance(agent, str) and agent:
        tag[SUBAGENT] = derive_session_id(NAME, f"{record.get('sessionId')}/{agent}", {})
    return json_text({NAME: tag}) if tag else ""


def _build_reply(replies: list[_LoadedRecord]) -> Message:
    parts: list[Part] = [p for reply in replies for p in parse_parts(reply.content, lambda _: "")]
    messages = [reply.message for reply in replies]
    models = [m["model"] for m in messages if isinstance(m.get("model"), str)]
    stops = [m["stop_reason"] for m in messages if isinstance(m.get("stop_reason"), str)]
    # the records repeat the usage; while a reply streams, early ones have counted less of it
    usages = [usage for m in messages if (usage := _read_usage(m.get("usage")))]
    return Message(
        role="model",
        parts=tuple(parts),
        model=models[-1] if models else "",
        finish=_FINISH.get(stops[-1], stops[-1]) if stops else "",
        usage=max(usages, key=lambda usage: usage.output) if usages else None,
    )


def _read_usage(value: object) -> Usage | None:
    """Claude Code counts cached tokens apart from the input; ours are part of it."""
    if not isinstance(value, dict):
        return None

    def count(key: str) -> int:
        number = value.get(key)
        return read_count(number) if type(number) is int else 0

    cached, written = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
    given = count("input_tokens") + cached + written
    output = count("output_tokens")
    told = cached if "cache_read_input_tokens" in value else None
    return believe_usage(
        Usage(input=given, output=output, cached=told, written=written, total=given + output)
    )
