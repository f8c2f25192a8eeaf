"""Gemini CLI's session files: one JSON object, or JSON lines; in, and out as one object.

A record is {id, timestamp, type, content, thoughts?, tokens?, model?, toolCalls?}. Calls and their
results sit together in `toolCalls`; in our log the results are a user message after the model's.
When `content` holds calls or thoughts itself, it says in which order everything came.

The format has no field for: system messages (written as type `info`), finish reasons, durations,
more than one text in a result, thought signatures outside `content`, malformed arguments, parts of
unknown type, requests and edits. They travel in the record's `recollect` field; see `records`.
In JSON lines, what a `$rewindTo` or a checkpoint (`$set` of messages) left behind becomes a branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from recollect.entries import (
    Body,
    Entry,
    Message,
    Note,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Usage,
    json_text,
)
from recollect.transcripts.gemini_cli import content_parts as wire
from recollect.transcripts.json_patch import Json
from recollect.transcripts.record_format import MARK_FIELD, ParsedBody
from recollect.transcripts.record_reader import RecordReader, read_leading_entries
from recollect.transcripts.record_writer import compose_file
from recollect.transcripts.timestamps import format_zulu, parse_time
from recollect.transcripts.tolerant_json import ImportProblem
from recollect.transcripts.transcript import Transcript, deduplicate, derive_session_id

NAME: Literal["gemini"] = "gemini"
_TOKENS = ("input", "output", "cached", "thoughts", "tool", "total")
_DONE = ("success", "error", "cancelled")
_LEVELS = {"info": "info", "warning": "warning", "error": "error"}


class GeminiRecordFormat:
    """The dialect of `records`."""

    name = NAME

    def read(self, record: Json, key: str) -> list[ParsedBody]:
        time, kind = parse_time(record.get("timestamp")), record.get("type")
        parts = wire.parse_parts(record.get("content"))
        if kind == "user":
            return [ParsedBody(Message(role="user", parts=tuple(parts)), time)]
        if kind == "gemini":
            return _read_model(record, parts, time, key)
        texts = [part.text for part in parts if isinstance(part, Text)]
        level: Any = _LEVELS.get(str(kind), "info")
        return [ParsedBody(Note(text="\n".join(texts), level=level), time)]

    def write(self, run: Sequence[Entry], name: str) -> Json:
        head = run[0]
        record: Json = {"id": name, "timestamp": format_zulu(head.time)}
        if isinstance(head.body, Note):
            return record | {"type": head.body.level, "content": head.body.text}
        assert isinstance(head.body, Message)
        if head.body.role != "model":
            kind = "user" if head.body.role == "user" else "info"
            return record | {"type": kind, "content": wire.encode_content(head.body.parts)}
        answers = [entry for entry in run[1:] if isinstance(entry.body, Message)]
        return record | _write_model(head.body, answers)

    def name_of(self, record: Json) -> str | None:
        name = record.get("id")
        return name if isinstance(name, str) else None

    def stands_alone(self, body: Body) -> bool:
        return isinstance(body, Message | Note)

    def mark_of(self, record: Json) -> object:
        return record.get(MARK_FIELD)

    def with_mark(self, record: Json, mark: object) -> Json:
        plain = {key: item for key, item in record.items() if key != MARK_FIELD}
        return plain if mark is None else plain | {MARK_FIELD: mark}


RECORD_FORMAT = GeminiRecordFormat()


# --- model messages ----------------------------------------------------------------------------


def _read_model(record: Json, content: list[Part], time: int | None, key: str) -> list[ParsedBody]:
    ordered = any(isinstance(part, Thought | ToolCall) for part in content)
    thoughts = [] if ordered else [_thought(each) for each in _objects(record.get("thoughts"))]
    calls: dict[str, ToolCall] = {p.id: p for p in content if isinstance(p, ToolCall)}
    shown = set(calls)
    results: list[ToolResult] = []
    answered: set[str] = set()
    for position, each in enumerate(_objects(record.get("toolCalls"))):
        call = _call(each, f"{key[:12]}-{position}")
        if call.id not in calls:
            calls[call.id] = call
        if call.id not in answered and (result := _result(each, call)):
            answered.add(call.id)
            results.append(result)
    parts = [*thoughts, *content, *(call for id_, call in calls.items() if id_ not in shown)]
    model = record.get("model")
    message = Message(
        role="model",
        parts=tuple(parts),
        model=model if isinstance(model, str) else "",
        usage=_usage(record.get("tokens")),
    )
    if not results:
        return [ParsedBody(message, time)]
    times = [result.time for result in results if result.time is not None]
    answer = Message(role="user", parts=tuple(results))
    return [ParsedBody(message, time), ParsedBody(answer, max(times) if times else None)]


def _objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _thought(value: Json) -> Thought:
    return Thought(
        text=_text(value.get("description")),
        subject=_text(value.get("subject")),
        time=parse_time(value.get("timestamp")),
    )


def _call(value: Json, fallback: str) -> ToolCall:
    return ToolCall(
        id=_text(value.get("id")) or fallback,
        name=_text(value.get("name")),
        arguments=json_text(value.get("args", {})),
    )


def _result(value: Json, call: ToolCall) -> ToolResult | None:
    status, output = _text(value.get("status")), value.get("result")
    if output is None and status not in _DONE:
        return None
    contents = [
        content for part in wire.as_list(output) for content in wire.parse_result_content(part)
    ]
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=tuple(contents),
        is_error=status in ("error", "cancelled"),
        status=status,
        time=parse_time(value.get("timestamp")),
    )


def _usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    counts = {key: value[key] for key in _TOKENS if wire.is_count(value.get(key))}
    return Usage(**counts) if counts else None


def _write_model(message: Message, answers: list[Entry]) -> Json:
    results = {
        part.call_id: (part, entry.time)
        for entry in reversed(answers)
        if isinstance(entry.body, Message)
        for part in reversed(entry.body.parts)
        if isinstance(part, ToolResult)
    }
    record: Json = {"type": "gemini"}
    if wire.in_natural_order(message.parts):
        plain = [part for part in message.parts if not isinstance(part, Thought | ToolCall)]
        record["content"] = wire.encode_content(plain)
        thoughts = [part for part in message.parts if isinstance(part, Thought)]
        record |= {"thoughts": [_write_thought(each) for each in thoughts]} if thoughts else {}
    else:
        record["content"] = [wire.encode_part(part) for part in message.parts]
    if message.usage is not None:
        record["tokens"] = {key: getattr(message.usage, key) for key in _TOKENS}
    if message.model:
        record["model"] = message.model
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    if calls:
        record["toolCalls"] = [_write_call(call, results.get(call.id)) for call in calls]
    return record


def _write_thought(thought: Thought) -> Json:
    written: Json = {"subject": thought.subject, "description": thought.text}
    return written if thought.time is None else written | {"timestamp": format_zulu(thought.time)}


def _write_call(call: ToolCall, answer: tuple[ToolResult, int] | None) -> Json:
    written: Json = {
        "id": call.id,
        "name": call.name,
        "args": wire.arguments_object(call.arguments),
    }
    if answer is None:
        return written | {"status": "scheduled"}
    result, time = answer
    return written | {
        "status": result.status or ("error" if result.is_error else "success"),
        "timestamp": format_zulu(time if result.time is None else result.time),
        "result": [wire.encode_response(result)],
    }


# --- files -------------------------------------------------------------------------------------


def read(value: Json) -> Transcript:
    """A file that is one object."""
    lines = _SessionLines(value)
    problems = []
    for position, record in enumerate(value.get("messages") or ()):
        if isinstance(record, dict):
            lines.add(record, by_id=False)
        else:
            kind = type(record).__name__
            problems.append(ImportProblem(1, f"message {position + 1} is a {kind}, not an object"))
    return lines.foreign(problems)


def read_lines(records: Iterable[tuple[int, Json]]) -> Transcript:
    """A file of JSON lines: header, messages, `$set`, `$rewindTo`."""
    lines, problems = _SessionLines({}), []
    for number, record in records:
        if "$rewindTo" in record:
            lines.rewind(record["$rewindTo"])
        elif isinstance(record.get("$set"), dict):
            lines.change(record["$set"])
        elif "type" in record and "id" in record:
            lines.add(record, by_id=True)
        elif "sessionId" in record or "projectHash" in record:
            lines.change(record)
        else:
            problems.append(
                ImportProblem(number, "a record of no known kind; kept in the source only")
            )
    return lines.foreign(problems)


class _MessageNode:
    """A message as it was last written, after the one it was first written after."""

    __slots__ = ("parent", "record")

    def __init__(self, record: Json, parent: _MessageNode | None) -> None:
        self.record, self.parent = record, parent


class _SessionLines:
    """What a file has said so far."""

    def __init__(self, header: Json) -> None:
        self.header = {key: item for key, item in header.items() if key != "messages"}
        self._nodes: list[_MessageNode] = []
        self._here: dict[str, _MessageNode] = {}  # by id, in order: the messages in force
        self._last: _MessageNode | None = None

    def add(self, record: Json, *, by_id: bool) -> None:
        name = record.get("id")
        if by_id and isinstance(name, str) and name in self._here:
            self._here[name].record = record
            return
        node = _MessageNode(record, self._last)
        self._nodes.append(node)
        self._last = node
        if isinstance(name, str):
            self._here[name] = node

    def rewind(self, name: object) -> None:
        """Takes back that message and what came after; all, when there is no such message."""
        known = isinstance(name, str) and name in self._here
        self._last = self._here[name].parent if known and isinstance(name, str) else None
        while self._here:
            if self._here.popitem()[0] == name:
                break

    def change(self, fields: Json) -> None:
        self.header |= {key: item for key, item in fields.items() if key != "messages"}
        if isinstance(fields.get("messages"), list):
            self._here, self._last = {}, None
            for record in _objects(fields["messages"]):
                self.add(record, by_id=True)

    def foreign(self, problems: list[ImportProblem]) -> Transcript:
        first = self._nodes[0].record if self._nodes else self.header
        session = derive_session_id(NAME, self.header.get("sessionId"), first)
        start = parse_time(self.header.get("startTime")) or 0
        reader = RecordReader(
            RECORD_FORMAT, session, _answered(node.record for node in self._nodes)
        )
        header, before = read_leading_entries(reader, self.header, start)
        entries = list(before)
        ends: dict[int, Entry] = {}
        root = before[-1] if before else None
        for node in self._nodes:
            parent = ends[id(node.parent)] if node.parent else root
            found = reader.read(node.record, parent, start)
            entries += found
            ends[id(node)] = found[-1]
        leaf = ends[id(self._last)] if self._last else root
        mark = header.get(MARK_FIELD)
        return Transcript(
            format=NAME,
            session=session,
            created=start,
            entries=deduplicate(entries),
            leaf=leaf.id if leaf else None,
            title=_text(mark.get("title")) if isinstance(mark, dict) else "",
            heading=_text(header.get("summary")),
            header=json_text({NAME: {"header": header}}),
            problems=tuple(problems),
        )


def _answered(records: Iterable[Json]) -> frozenset[str]:
    """Calls whose results are in a user's record of their own, as providers see them."""
    return frozenset(
        part.call_id
        for record in records
        if record.get("type") == "user"
        for part in wire.parse_parts(record.get("content"))
        if isinstance(part, ToolResult)
    )


def write(header: Json, entries: Sequence[Entry]) -> Json:
    """The file's value, from a header and the entries of a path."""
    return compose_file(RECORD_FORMAT, header, entries)
