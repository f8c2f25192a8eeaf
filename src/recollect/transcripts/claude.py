"""Claude Code's session files: JSON lines, in only.

A record names its parent, and the chain, not the line, is the order. One reply is several records
that share `message.id`; it becomes one model message, its usage counted once. The results of its
calls hang off different records of the reply, so the reply and its results are kept together as one
*turn*, and whatever continues any of them continues the turn. A `compact_boundary` and the summary
after it become one compaction. Turns that the last leaf does not descend from are branches of the
tree. Sidechains, progress, system notices and attachments are no turns: the source keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from recollect.entries import (
    Body,
    Compaction,
    Entry,
    Message,
    Part,
    ToolCall,
    ToolResult,
    Usage,
    json_text,
)
from recollect.store.ids import derived_id
from recollect.transcripts import claude_parts as wire
from recollect.transcripts.claude_tree import Record, Tree, grow, is_subagent
from recollect.transcripts.foreign import Foreign, session_id
from recollect.transcripts.patches import Json
from recollect.transcripts.records import canonical
from recollect.transcripts.times import parse_time

NAME: Literal["claude-code"] = "claude-code"
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "refusal": "safety",
}
_TITLES = (("custom-title", "customTitle"), ("ai-title", "aiTitle"), ("summary", "summary"))


class _Draft(NamedTuple):
    """A body with the records it was made from."""

    body: Body
    records: tuple[Json, ...]


def read(records: Iterable[tuple[int, Json]]) -> Foreign:
    found = list(records)
    tree, problems = grow(found)
    first = next((record.value for record in tree.records()), found[0][1] if found else {})
    session = session_id(NAME, _given_id([value for _, value in found]), first)
    start = next((t for _, value in found if (t := parse_time(value.get("timestamp")))), 0)
    entries, ends = _entries(tree, session, start)
    leaf = ends.get(tree.leaf) if tree.leaf is not None else None
    return Foreign(
        format=NAME,
        session=session,
        created=start,
        entries=tuple(entries),
        leaf=leaf.id if leaf else None,
        heading=_title(value for _, value in found),
        header=json_text({NAME: _about(first)}),
        problems=tuple(problems),
    )


def _given_id(values: list[Json]) -> object:
    given = next((value["sessionId"] for value in values if "sessionId" in value), None)
    if not is_subagent(values):
        return given
    # a subagent's file bears the id of the session that called it
    return f"{given}/{next((v['agentId'] for v in values if 'agentId' in v), '')}"


def _about(record: Json) -> Json:
    return {
        key: record[key] for key in ("sessionId", "cwd", "version", "gitBranch") if key in record
    }


def _title(values: Iterable[Json]) -> str:
    last: dict[str, str] = {}
    for value in values:
        for kind, field in _TITLES:
            given = value.get(field, value.get("title"))
            if value.get("type") == kind and isinstance(given, str) and given.strip():
                last[kind] = given
    return next((last[kind] for kind, _ in _TITLES if kind in last), "")


def _entries(tree: Tree, session: str, start: int) -> tuple[list[Entry], dict[int, Entry | None]]:
    """The entries of every turn, parents first, and the last entry of each turn."""
    entries: list[Entry] = []
    ends: dict[int, Entry | None] = {}
    names = {
        part.id: part.name
        for record in tree.records()
        if record.kind == "assistant"
        for part in wire.parts_of(record.content, {})
        if isinstance(part, ToolCall)
    }
    for number, turn in tree.in_order():
        above = ends[turn.parent] if turn.parent is not None else None
        for body, sources in _drafts(turn.members, names):
            text = "\n".join(canonical(source) for source in sources)
            key = derived_id(NAME, session, above.id if above else "", text)
            time = parse_time(sources[0].get("timestamp"))
            when = time if time is not None else above.time if above else start
            above = Entry(key, above.id if above else None, when, body)
            entries.append(above)
        ends[number] = above
    return entries, ends


def _drafts(members: list[Record], names: Mapping[str, str]) -> list[_Draft]:
    """The bodies of a turn: the reply, then each user's record; or one compaction."""
    boundary = next((m.value for m in members if m.kind == "boundary"), None)
    summary = next((m for m in members if m.kind == "summary"), None)
    if boundary is not None or summary is not None:
        return [_compaction(boundary, summary)]
    drafts = []
    replies = [member for member in members if member.kind == "assistant"]
    if replies:
        drafts.append(_Draft(_reply(replies), tuple(member.value for member in replies)))
    answered: set[ToolResult] = set()
    for member in members:
        if member.kind == "user":
            parts = [p for p in wire.parts_of(member.content, names) if p not in answered]
            # a result that is written twice would be sent twice, which providers refuse
            answered.update(part for part in parts if isinstance(part, ToolResult))
            if parts or not replies:
                message = Message(role="user", parts=tuple(parts), extra=_extra(member))
                drafts.append(_Draft(message, (member.value,)))
    return drafts


def _extra(record: Record) -> str:
    """Nothing for most: entries without it load many times faster, and the source has it all."""
    return json_text({NAME: {"isMeta": True}}) if record.value.get("isMeta") is True else ""


def _reply(replies: list[Record]) -> Message:
    parts: list[Part] = [p for reply in replies for p in wire.parts_of(reply.content, {})]
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


def _compaction(boundary: Json | None, summary: Record | None) -> _Draft:
    sources = (*([boundary] if boundary else []), *([summary.value] if summary else []))
    about = (boundary or {}).get("compactMetadata")
    tokens = about.get("preTokens") if isinstance(about, dict) else None
    text = wire.text_of(summary.content) if summary else ""
    return _Draft(
        Compaction(
            status="COMPRESSED" if text else "COMPRESSION_FAILED_EMPTY_SUMMARY",
            snapshot=text,
            tokens_before=tokens if type(tokens) is int and 0 <= tokens < 2**53 else 0,
            trigger="import",
            reason="" if text else "the file has no summary for this boundary",
        ),
        sources,
    )
