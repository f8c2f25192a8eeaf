"""The history server's session files: one JSON object, in and out.

A record is {role: user|assistant|system, content, timestamp, tool_calls, metadata}, a call
{tool_name, arguments, result, status, duration, timestamp}: it has no id, so one is derived. In our
log the results are a user message after the assistant's.

The format has no field for: ids of messages and calls, thoughts, inline data, file references,
models, finish reasons, token usage, results that are not one text, malformed arguments, notes,
requests and edits. They travel in a message's `metadata.recollect` (metadata is where the server
itself lets others add things); see `records`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from recollect.entries import Body, Entry, Message, Text, ToolCall, ToolResult, json_text
from recollect.transcripts.gemini_cli.content_parts import arguments_object
from recollect.transcripts.json_patch import Json
from recollect.transcripts.record_format import MARK_FIELD, ParsedBody
from recollect.transcripts.record_reader import RecordReader, read_leading_entries
from recollect.transcripts.record_writer import compose_file
from recollect.transcripts.timestamps import format_zoneless, parse_time
from recollect.transcripts.tolerant_json import ImportProblem
from recollect.transcripts.transcript import Transcript, derive_session_id

NAME: Literal["history-server"] = "history-server"
_ROLES = {"user": "user", "assistant": "model", "system": "system"}
_FAILED = ("error", "failed", "failure", "timeout", "cancelled")
_WAITING = "pending"


class HistoryServerRecordFormat:
    """The dialect of `records`."""

    name = NAME

    def read(self, record: Json, key: str) -> list[ParsedBody]:
        time, content = parse_time(record.get("timestamp")), record.get("content")
        role: Any = _ROLES.get(str(record.get("role")), "user")
        parts: list[Text | ToolCall] = []
        if isinstance(content, str) and content:
            parts.append(Text(text=content))
        results: list[ToolResult] = []
        for position, each in enumerate(_objects(record.get("tool_calls"))):
            call = _call(each, f"{key[:12]}-{position}")
            parts.append(call)
            if result := _result(each, call):
                results.append(result)
        message = ParsedBody(Message(role=role, parts=tuple(parts)), time)
        if not results:
            return [message]
        times = [result.time for result in results if result.time is not None]
        answer = Message(role="user", parts=tuple(results))
        return [message, ParsedBody(answer, max(times) if times else None)]

    def write(self, run: Sequence[Entry], name: str) -> Json:  # noqa: ARG002 - no field for it
        message = run[0].body
        assert isinstance(message, Message)
        role = {ours: theirs for theirs, ours in _ROLES.items()}[message.role]
        results = {
            part.call_id: (part, entry.time)
            for entry in reversed(run[1:])
            if isinstance(entry.body, Message)
            for part in reversed(entry.body.parts)
            if isinstance(part, ToolResult)
        }
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        return {
            "role": role,
            "content": "\n".join(texts),
            "timestamp": format_zoneless(run[0].time),
            "tool_calls": [_write_call(c, results.get(c.id), run[0].time) for c in calls],
            "metadata": {},
        }

    def name_of(self, record: Json) -> str | None:  # noqa: ARG002 - records have none
        return None

    def stands_alone(self, body: Body) -> bool:
        return isinstance(body, Message)

    def mark_of(self, record: Json) -> object:
        metadata = record.get("metadata")
        return metadata.get(MARK_FIELD) if isinstance(metadata, dict) else None

    def with_mark(self, record: Json, mark: object) -> Json:
        metadata = record.get("metadata")
        plain = metadata if isinstance(metadata, dict) else {}
        plain = {key: item for key, item in plain.items() if key != MARK_FIELD}
        return record | {"metadata": plain if mark is None else plain | {MARK_FIELD: mark}}


RECORD_FORMAT = HistoryServerRecordFormat()


def _objects(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _call(value: Json, id_: str) -> ToolCall:
    name = _text(value.get("tool_name"))
    return ToolCall(id=id_, name=name, arguments=json_text(value.get("arguments", {})))


def _result(value: Json, call: ToolCall) -> ToolResult | None:
    status, output = _text(value.get("status")), value.get("result")
    if output is None or (output == "" and status == _WAITING):
        return None
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=(Text(text=output if isinstance(output, str) else json_text(output)),),
        is_error=status.lower() in _FAILED,
        status=status,
        duration=_seconds(value.get("duration")),
        time=parse_time(value.get("timestamp")),
    )


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 2**53:
        return None
    return float(value) if math.isfinite(value) else None


def _write_call(call: ToolCall, answer: tuple[ToolResult, int] | None, time: int) -> Json:
    written: Json = {"tool_name": call.name, "arguments": arguments_object(call.arguments)}
    if answer is None:
        waiting: Json = {"result": "", "status": _WAITING, "duration": 0.0}
        return written | waiting | {"timestamp": format_zoneless(time)}
    result, answered = answer
    return written | {
        "result": "\n".join(part.text for part in result.content if isinstance(part, Text)),
        "status": result.status or ("error" if result.is_error else "success"),
        "duration": _seconds(result.duration) or 0.0,
        "timestamp": format_zoneless(answered if result.time is None else result.time),
    }


def read(value: Json) -> Transcript:
    given = value.get("messages")
    messages: list[object] = given if isinstance(given, list) else []
    header = {key: item for key, item in value.items() if key != "messages"}
    records = [record for record in messages if isinstance(record, dict)]
    session = derive_session_id(NAME, value.get("session_id"), records[0] if records else header)
    start = parse_time(value.get("created_at")) or 0
    reader = RecordReader(RECORD_FORMAT, session, frozenset())
    header, entries = read_leading_entries(reader, header, start)
    for record in records:
        entries += reader.read(record, entries[-1] if entries else None, start)
    problems = (
        ImportProblem(1, f"message {position} is a {type(record).__name__}, not an object")
        for position, record in enumerate(messages, 1)
        if not isinstance(record, dict)
    )
    mark = header.get(MARK_FIELD)
    return Transcript(
        format=NAME,
        session=session,
        created=start,
        entries=tuple(entries),
        leaf=entries[-1].id if entries else None,
        title=_text(mark.get("title")) if isinstance(mark, dict) else "",
        header=json_text({NAME: {"header": header}}),
        problems=tuple(problems),
    )


def write(header: Json, entries: Sequence[Entry]) -> Json:
    """The file's value, from a header and the entries of a path."""
    return compose_file(RECORD_FORMAT, header, entries)
