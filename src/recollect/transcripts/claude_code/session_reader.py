"""Claude Code's session files: JSON lines, in only.

A record names its parent, and the chain, not the line, is the order. One reply is several records
that share `message.id`; it becomes one model message, its usage counted once. The results of its
calls hang off different records of the reply, so the reply and its results are kept together as one
*turn*, and whatever continues any of them continues the turn. A `compact_boundary` and the summary
after it become one compaction, a `microcompact_boundary` an elision. Turns that the last leaf does
not descend from are branches of the tree. Subagents that the file tells of are sessions of their
own. Progress, system notices and attachments are no turns: the source keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Entry,
    Message,
    Part,
    ToolCall,
    ToolResult,
    Usage,
    json_text,
)
from recollect.store.ids import derived_id
from recollect.transcripts.claude_code import content_blocks as wire
from recollect.transcripts.claude_code.compact_boundaries import (
    ResultLocation,
    build_compaction,
    build_elision,
    cleared_call_ids,
)
from recollect.transcripts.claude_code.record_tree import (
    ClaudeRecord,
    RecordTree,
    RecordTurn,
    build_tree,
    is_subagent,
)
from recollect.transcripts.claude_code.sidechains import Sidechain, extract_sidechains
from recollect.transcripts.json_patch import Json
from recollect.transcripts.record_reader import canonical_json
from recollect.transcripts.subagent_links import SUBAGENT
from recollect.transcripts.timestamps import parse_time
from recollect.transcripts.transcript import SubagentInfo, Transcript, derive_session_id

NAME: Literal["claude-code"] = "claude-code"
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "refusal": "safety",
}
_TITLES = (
    ("custom-title", "customTitle"),
    ("agent-name", "agentName"),
    ("ai-title", "aiTitle"),
    ("summary", "summary"),
)
_CARRIED = 200_000  # characters of a snapshot that another repeats
_COMPACTIONS = 200  # that may repeat one: a hostile file must not grow into a huge session


class _EntryDraft(NamedTuple):
    """A body with the records it was made from."""

    body: Body
    records: tuple[Json, ...]


class _WrittenEntries(NamedTuple):
    """What later entries refer to."""

    starts: dict[int, str]  # the first entry of each turn
    results: dict[str, ResultLocation]  # by the call
    compactions: dict[int, Compaction]  # by the turn


def read(records: Iterable[tuple[int, Json]]) -> Transcript:
    """A file's own session, with those of the subagents that it tells of beside."""
    found = list(records)
    told = tuple(_read(aside.values, aside) for aside in extract_sidechains(found))
    return msgspec.structs.replace(_read(found, None), subagents=told)


def _read(found: list[tuple[int, Json]], aside: Sidechain | None) -> Transcript:
    tree, problems = build_tree(found)
    values = [value for _, value in found]
    first = next((record.value for record in tree.records()), found[0][1] if found else {})
    session, agent = _identity(values, first, aside)
    start = next((t for value in values if (t := parse_time(value.get("timestamp")))), 0)
    entries, ends = _entries(tree, session, start)
    leaf = ends.get(tree.leaf) if tree.leaf is not None else None
    return Transcript(
        format=NAME,
        session=session,
        created=start,
        entries=tuple(entries),
        leaf=leaf.id if leaf else None,
        heading=_title(values),
        header=json_text({NAME: _about(first)}),
        problems=tuple(problems),
        agent=agent,
    )


def _identity(
    values: list[Json], first: Json, aside: Sidechain | None
) -> tuple[str, SubagentInfo | None]:
    given = next((value["sessionId"] for value in values if "sessionId" in value), None)
    if not is_subagent(values):
        return derive_session_id(NAME, given, first), None
    # a subagent's records bear the id of the session that called it
    name = aside.name if aside else next((v["agentId"] for v in values if "agentId" in v), "")
    agent = SubagentInfo(
        parent=derive_session_id(NAME, given, first), call=aside.call if aside else ""
    )
    return derive_session_id(NAME, f"{given}/{name}", first), agent


def _about(record: Json) -> Json:
    return {
        key: record[key]
        for key in ("sessionId", "agentId", "cwd", "version", "gitBranch")
        if key in record
    }


def _title(values: Iterable[Json]) -> str:
    last: dict[str, str] = {}
    for value in values:
        for kind, field in _TITLES:
            given = value.get(field, value.get("title"))
            if value.get("type") == kind and isinstance(given, str) and given.strip():
                last[kind] = given
    return next((last[kind] for kind, _ in _TITLES if kind in last), "")


def _entries(
    tree: RecordTree, session: str, start: int
) -> tuple[list[Entry], dict[int, Entry | None]]:
    """The entries of every turn, parents first, and the last entry of each turn."""
    entries: list[Entry] = []
    ends: dict[int, Entry | None] = {}
    written = _WrittenEntries({}, {}, {})
    names = {
        part.id: part.name
        for record in tree.records()
        if record.kind == "assistant"
        for part in wire.parse_parts(record.content, {})
        if isinstance(part, ToolCall)
    }
    for number, turn in tree.in_order():
        above = ends[turn.parent] if turn.parent is not None else None
        for body, sources in _edits(tree, number, written) or _drafts(turn.members, names):
            text = "\n".join(canonical_json(source) for source in sources)
            key = derived_id(NAME, session, above.id if above else "", text)
            time = parse_time(sources[0].get("timestamp"))
            when = time if time is not None else above.time if above else start
            above = Entry(key, above.id if above else None, when, body)
            entries.append(above)
            _remember(written, number, above)
        ends[number] = above
    return entries, ends


def _remember(written: _WrittenEntries, turn: int, entry: Entry) -> None:
    written.starts.setdefault(turn, entry.id)
    if isinstance(entry.body, Compaction):
        written.compactions[turn] = entry.body
    elif isinstance(entry.body, Message) and entry.body.role == "user":
        for position, part in enumerate(entry.body.parts):
            if isinstance(part, ToolResult):
                place = ResultLocation(turn, entry.id, position, part.name)
                written.results.setdefault(part.call_id, place)


def _edits(tree: RecordTree, number: int, written: _WrittenEntries) -> list[_EntryDraft]:
    """The one body of a turn that is a compaction or a microcompaction."""
    turn = tree.turns[number]
    boundary = next((m.value for m in turn.members if m.kind == "boundary"), None)
    summary = next((m for m in turn.members if m.kind == "summary"), None)
    if boundary is not None or summary is not None:
        sources = [value for value in (boundary, summary.value if summary else None) if value]
        kept, earlier = _staying(turn, written)
        text = wire.joined_text(summary.content) if summary else ""
        text = f"{earlier}\n\n{text}" if earlier and text else text
        return [_EntryDraft(build_compaction(boundary or {}, text, kept), tuple(sources))]
    items = [
        (build_elision(call, place), member.value)
        for member in turn.members
        if member.kind == "microcompact"
        for call in cleared_call_ids(member.value)
        if (place := written.results.get(call)) and tree.is_above(place.turn, number)
    ]
    if not items:
        return []
    elide = Elide(rule="import", items=tuple(item for item, _ in items))
    return [_EntryDraft(elide, (items[0][1],))]


def _staying(turn: RecordTurn, written: _WrittenEntries) -> tuple[str | None, str]:
    """The first entry that a compaction keeps. When that is an earlier compaction, also its
    snapshot and what it kept: only the newest snapshot is shown, so that one has to hold both."""
    if turn.kept is None:
        return None, ""
    earlier = written.compactions.get(turn.kept)
    if earlier is None:
        return written.starts.get(turn.kept), ""
    carried = len(earlier.snapshot) <= _CARRIED and len(written.compactions) <= _COMPACTIONS
    kept = earlier.first_kept or written.starts[turn.kept]
    return kept, earlier.snapshot if carried else ""


def _drafts(members: list[ClaudeRecord], names: Mapping[str, str]) -> list[_EntryDraft]:
    """The bodies of any other turn: the reply, then each user's record."""
    drafts = []
    replies = [member for member in members if member.kind == "assistant"]
    if replies:
        drafts.append(_EntryDraft(_reply(replies), tuple(member.value for member in replies)))
    answered: set[ToolResult] = set()
    for member in members:
        if member.kind == "user":
            parts = [p for p in wire.parse_parts(member.content, names) if p not in answered]
            # a result that is written twice would be sent twice, which providers refuse
            answered.update(part for part in parts if isinstance(part, ToolResult))
            if parts or not replies:
                message = Message(role="user", parts=tuple(parts), extra=_extra(member.value))
                drafts.append(_EntryDraft(message, (member.value,)))
    return drafts


def _extra(record: Json) -> str:
    """Nothing for most: entries without it load many times faster, and the source has it all."""
    tag: Json = {"isMeta": True} if record.get("isMeta") is True else {}
    result = record.get("toolUseResult")
    agent = result.get("agentId") if isinstance(result, dict) else None
    if isinstance(agent, str) and agent:
        tag[SUBAGENT] = derive_session_id(NAME, f"{record.get('sessionId')}/{agent}", {})
    return json_text({NAME: tag}) if tag else ""


def _reply(replies: list[ClaudeRecord]) -> Message:
    parts: list[Part] = [p for reply in replies for p in wire.parse_parts(reply.content, {})]
    messages = [reply.message for reply in replies]
    models = [m["model"] for m in messages if isinstance(m.get("model"), str)]
    stops = [m["stop_reason"] for m in messages if isinstance(m.get("stop_reason"), str)]
    # the records repeat the usage; while a reply streams, early ones have counted less of it
    usages = [usage for m in messages if (usage := _usage(m.get("usage")))]
    return Message(
        role="model",
        parts=tuple(parts),
        model=models[-1] if models else "",
        finish=_FINISH.get(stops[-1], stops[-1]) if stops else "",
        usage=max(usages, key=lambda usage: usage.output) if usages else None,
    )


def _usage(value: object) -> Usage | None:
    """Theirs counts what came from the cache apart from the input; ours as part of it."""
    if not isinstance(value, dict):
        return None

    def count(key: str) -> int:
        number = value.get(key)
        return number if type(number) is int and 0 <= number < 2**50 else 0

    cached = count("cache_read_input_tokens")
    given = count("input_tokens") + cached + count("cache_creation_input_tokens")
    output = count("output_tokens")
    return Usage(input=given, output=output, cached=cached, total=given + output)
