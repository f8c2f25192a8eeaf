"""Claude Code's session files: JSON lines, read only.

A record names its parent, and the chain, not the line, is the order. One reply is several records
that share `message.id`; it becomes one model message, its usage counted once. The results of its
calls are attached to different records of the reply, so the reply and its results form one *turn*,
and a record that continues any of them continues the turn. A `compact_boundary` and the summary
after it become one compaction, a `microcompact_boundary` an elision. Turns that the last leaf does
not descend from are branches of the tree. Subagents in the file become sessions of their own.
Progress, system notices and attachments are no turns: only the source keeps them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from recollect.codecs.foreign_json import read_count
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Part,
    ToolCall,
    ToolResult,
    Usage,
    json_text,
)
from recollect.store.ids import derived_id
from recollect.tokens import believe_usage
from recollect.transcripts.claude_code.content_blocks import joined_text, parse_parts
from recollect.transcripts.claude_code.record_tree import (
    ClaudeRecord,
    RecordTree,
    RecordTurn,
    Sidechain,
    build_tree,
    extract_sidechains,
    is_subagent,
)
from recollect.transcripts.json_values import (
    Json,
    canonical_json,
    count_or_none,
    object_or_empty,
    strings_in,
)
from recollect.transcripts.subagent_links import NAME, SUBAGENT
from recollect.transcripts.timestamps import parse_time
from recollect.transcripts.transcript import (
    SubagentInfo,
    Transcript,
    derive_session_id,
    is_folder_path,
)
from recollect.user_text import find_context

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "refusal": "safety",
}
_TITLES = (  # the first that a file has wins
    ("custom-title", "customTitle"),
    ("agent-name", "agentName"),
    ("ai-title", "aiTitle"),
    ("summary", "summary"),
)
# a hostile file must not grow into a huge session by snapshots that repeat each other
_REPEATED_CHARACTERS = 200_000
_REPEATING_COMPACTIONS = 200
_UNSAFE = re.compile(r"[^\w.:-]+")  # in names that a placeholder shows


_EntryDraft: TypeAlias = tuple[Body, tuple[Json, ...]]  # with the records it was made from


class _ResultLocation(NamedTuple):
    """Where the result of a call is."""

    turn: int
    entry: str
    part: int
    tool: str


class _WrittenEntries(NamedTuple):
    """What later entries refer to."""

    starts: dict[int, str]  # the first entry of each turn
    results: dict[str, _ResultLocation]  # by the call
    compactions: dict[int, Compaction]  # by the turn

    def add(self, turn: int, entry: Entry) -> None:
        self.starts.setdefault(turn, entry.id)
        if isinstance(entry.body, Compaction):
            self.compactions[turn] = entry.body
        elif isinstance(entry.body, Message) and entry.body.role == "user":
            for position, part in enumerate(entry.body.parts):
                if isinstance(part, ToolResult):
                    location = _ResultLocation(turn, entry.id, position, part.name)
                    self.results.setdefault(part.call_id, location)


def detect(record: Json) -> bool:
    return (
        isinstance(record.get("uuid"), str)
        and "parentUuid" in record
        and "content" in object_or_empty(record.get("message"))
    )


def read(records: Iterable[tuple[int, Json]]) -> Transcript:
    """A file's own session, with the sessions of the subagents in the same file."""
    found = list(records)
    subagents = tuple(_read(chain.values, chain) for chain in extract_sidechains(found))
    return msgspec.structs.replace(_read(found, None), subagents=subagents)


def _read(found: Sequence[tuple[int, Json]], sidechain: Sidechain | None) -> Transcript:
    tree, problems = build_tree(found)
    values = [value for _, value in found]
    first = next((record.value for record in tree.records()), found[0][1] if found else {})
    session, subagent = _identify(values, first, sidechain)
    start = next((t for value in values if (t := parse_time(value.get("timestamp")))), 0)
    entries, ends = _build_entries(tree, session, start)
    leaf = ends.get(tree.leaf) if tree.leaf is not None else None
    fields = ("sessionId", "agentId", "cwd", "version", "gitBranch")
    return Transcript(
        format=NAME,
        session=session,
        created=start,
        entries=tuple(entries),
        leaf=leaf.id if leaf else None,
        folder=_find_folder(values),
        heading=_find_title(values),
        header=json_text({NAME: {key: first[key] for key in fields if key in first}}),
        problems=tuple(problems),
        subagent=subagent,
    )


def _identify(
    values: list[Json], first: Json, sidechain: Sidechain | None
) -> tuple[str, SubagentInfo | None]:
    given = next((value["sessionId"] for value in values if "sessionId" in value), None)
    own = derive_session_id(NAME, given, first)
    if not is_subagent(values):
        return own, None
    # a subagent's records carry the id of the session that called it
    given_name = next((value["agentId"] for value in values if "agentId" in value), "")
    name, call = (sidechain.name, sidechain.call) if sidechain else (given_name, "")
    return derive_session_id(NAME, f"{given}/{name}", first), SubagentInfo(parent=own, call=call)


def _find_folder(values: Iterable[Json]) -> str:
    """Where the session began; other programs run elsewhere, so the path may not exist here."""
    found = next((cwd for value in values if isinstance(cwd := value.get("cwd"), str)), "")
    return found if is_folder_path(found) else ""


def _find_title(values: Iterable[Json]) -> str:
    last: dict[str, str] = {}
    for value in values:
        for kind, field in _TITLES:
            given = value.get(field, value.get("title"))
            if value.get("type") == kind and isinstance(given, str) and given.strip():
                last[kind] = given
    return next((last[kind] for kind, _ in _TITLES if kind in last), "")


def _build_entries(
    tree: RecordTree, session: str, start: int
) -> tuple[list[Entry], dict[int, Entry | None]]:
    """The entries of every turn, parents first, and the last entry of each turn."""
    entries: list[Entry] = []
    ends: dict[int, Entry | None] = {}
    written = _WrittenEntries({}, {}, {})
    tool_names = {
        part.id: part.name
        for record in tree.records()
        if record.kind == "assistant"
        for part in parse_parts(record.content, {})
        if isinstance(part, ToolCall)
    }
    for number in tree.order:
        turn = tree.turns[number]
        above = ends[turn.parent] if turn.parent is not None else None
        drafts = _draft_edits(tree, number, written) or _draft_messages(turn.members, tool_names)
        for body, sources in drafts:
            text = "\n".join(canonical_json(source) for source in sources)
            key = derived_id(NAME, session, above.id if above else "", text)
            time = parse_time(sources[0].get("timestamp"))
            when = time if time is not None else above.time if above else start
            above = Entry(key, above.id if above else None, when, body)
            entries.append(above)
            written.add(number, above)
        ends[number] = above
    return entries, ends


def _draft_edits(tree: RecordTree, number: int, written: _WrittenEntries) -> list[_EntryDraft]:
    """The one body of a turn that is a compaction or a microcompaction."""
    turn = tree.turns[number]
    boundary = next((m.value for m in turn.members if m.kind == "boundary"), None)
    summary = next((m for m in turn.members if m.kind == "summary"), None)
    if boundary is not None or summary is not None:
        sources = [value for value in (boundary, summary.value if summary else None) if value]
        kept, earlier = _kept_by(turn, written)
        text = joined_text(summary.content) if summary else ""
        text = f"{earlier}\n\n{text}" if earlier and text else text
        return [(_build_compaction(boundary or {}, text, kept), tuple(sources))]
    items = [
        (_build_elision(call, location), member.value)
        for member in turn.members
        if member.kind == "microcompact"
        for call in dict.fromkeys(_cleared_call_ids(member.value))
        if (location := written.results.get(call)) and tree.is_above(location.turn, number)
    ]
    if not items:
        return []
    elide = Elide(rule="import", items=tuple(item for item, _ in items))
    return [(elide, (items[0][1],))]


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


def _kept_by(turn: RecordTurn, written: _WrittenEntries) -> tuple[str | None, str]:
    """The first entry that a compaction keeps. If that is an earlier compaction, also its snapshot
    and what it kept: only the newest snapshot is shown, so that one has to hold both."""
    if turn.kept is None:
        return None, ""
    earlier = written.compactions.get(turn.kept)
    if earlier is None:
        return written.starts.get(turn.kept), ""
    short = len(earlier.snapshot) <= _REPEATED_CHARACTERS
    repeated = short and len(written.compactions) <= _REPEATING_COMPACTIONS
    kept = earlier.first_kept or written.starts[turn.kept]
    return kept, earlier.snapshot if repeated else ""


def _draft_messages(
    members: list[ClaudeRecord], tool_names: Mapping[str, str]
) -> list[_EntryDraft]:
    """The bodies of any other turn: the reply, then each user's record."""
    drafts: list[_EntryDraft] = []
    replies = [member for member in members if member.kind == "assistant"]
    if replies:
        sources = tuple(member.value for member in replies)
        drafts.append((_build_reply(replies), sources))
    answered: set[ToolResult] = set()
    for member in members:
        if member.kind == "user":
            parts = [p for p in parse_parts(member.content, tool_names) if p not in answered]
            # providers refuse a result that is sent twice
            answered.update(part for part in parts if isinstance(part, ToolResult))
            if parts or not replies:
                context = find_context(parts, added=member.value.get("isMeta") is True)
                extra = _extra(member.value)
                message = Message(role="user", parts=tuple(parts), context=context, extra=extra)
                drafts.append((message, (member.value,)))
    return drafts


def _extra(record: Json) -> str:
    """Empty for most: entries without it load many times faster, and the source has everything."""
    tag: Json = {"isMeta": True} if record.get("isMeta") is True else {}
    agent = object_or_empty(record.get("toolUseResult")).get("agentId")
    if isinstance(agent, str) and agent:
        tag[SUBAGENT] = derive_session_id(NAME, f"{record.get('sessionId')}/{agent}", {})
    return json_text({NAME: tag}) if tag else ""


def _build_reply(replies: list[ClaudeRecord]) -> Message:
    parts: list[Part] = [p for reply in replies for p in parse_parts(reply.content, {})]
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
