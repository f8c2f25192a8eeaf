"""One message in Gemini CLI's session files.

A record is {id, timestamp, type, content, thoughts?, tokens?, model?, toolCalls?}. Calls and their
results are together in `toolCalls`; in our log the results are a user message after the model's.
When `content` itself holds calls or thoughts, it gives the order of everything.

The format has no field for: system messages (written as type `info`), finish reasons, durations,
more than one text in a result, thought signatures outside `content`, malformed arguments, parts of
unknown type, requests and edits. They are carried in the record's `recollect` field; see
`record_reader`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.entries import (
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
from recollect.transcripts.gemini_cli import content_parts as content
from recollect.transcripts.json_values import Json, count_or_none, objects_in, string_or_empty
from recollect.transcripts.record_format import (
    ParsedBody,
    RecordFormat,
    arguments_object,
    results_by_call,
    with_results,
)
from recollect.transcripts.timestamps import format_zulu, parse_time

NAME = "gemini"
_TOKENS = ("input", "output", "cached", "thoughts", "tool", "total")
_DONE = ("success", "error", "cancelled")
# our own strings: msgspec leaves out a default only if it is the very same object
_LEVELS = {"info": "info", "warning": "warning", "error": "error"}


def _read_record(record: Json, key: str) -> list[ParsedBody]:
    time, kind = parse_time(record.get("timestamp")), record.get("type")
    parts = content.parse_parts(record.get("content"))
    if kind == "user":
        return [ParsedBody(Message(role="user", parts=tuple(parts)), time)]
    if kind == "gemini":
        return _read_model(record, parts, time, key)
    texts = [part.text for part in parts if isinstance(part, Text)]
    level: Any = _LEVELS.get(str(kind), "info")
    return [ParsedBody(Note(text="\n".join(texts), level=level), time)]


def _write_record(run: Sequence[Entry], record_id: str) -> Json:
    body = run[0].body
    record: Json = {"id": record_id, "timestamp": format_zulu(run[0].time)}
    if isinstance(body, Note):
        return record | {"type": body.level, "content": body.text}
    assert isinstance(body, Message)
    if body.role == "model":
        return record | _write_model(body, results_by_call(run))
    kind = "user" if body.role == "user" else "info"
    return record | {"type": kind, "content": content.encode_content(body.parts)}


RECORD_FORMAT = RecordFormat(
    name=NAME, bodies=(Message, Note), read=_read_record, write=_write_record, id_field="id"
)


def _read_model(record: Json, parts: list[Part], time: int | None, key: str) -> list[ParsedBody]:
    ordered = any(isinstance(part, Thought | ToolCall) for part in parts)
    thoughts = [] if ordered else [_read_thought(t) for t in objects_in(record.get("thoughts"))]
    calls: dict[str, ToolCall] = {p.id: p for p in parts if isinstance(p, ToolCall)}
    in_content = set(calls)
    results: dict[str, ToolResult] = {}
    for position, each in enumerate(objects_in(record.get("toolCalls"))):
        call = _read_call(each, f"{key[:12]}-{position}")
        calls.setdefault(call.id, call)
        if call.id not in results and (result := _read_result(each, call)):
            results[call.id] = result
    others = [call for id_, call in calls.items() if id_ not in in_content]
    message = Message(
        role="model",
        parts=(*thoughts, *parts, *others),
        model=string_or_empty(record.get("model")),
        usage=_read_usage(record.get("tokens")),
    )
    return with_results(ParsedBody(message, time), tuple(results.values()))


def _read_thought(value: Json) -> Thought:
    return Thought(
        text=string_or_empty(value.get("description")),
        subject=string_or_empty(value.get("subject")),
        time=parse_time(value.get("timestamp")),
    )


def _read_call(value: Json, fallback_id: str) -> ToolCall:
    return ToolCall(
        id=string_or_empty(value.get("id")) or fallback_id,
        name=string_or_empty(value.get("name")),
        arguments=json_text(value.get("args", {})),
    )


def _read_result(value: Json, call: ToolCall) -> ToolResult | None:
    status, output = string_or_empty(value.get("status")), value.get("result")
    if output is None and status not in _DONE:
        return None
    parts = [p for item in content.as_list(output) for p in content.parse_result_content(item)]
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=tuple(parts),
        is_error=status in ("error", "cancelled"),
        status=status,
        time=parse_time(value.get("timestamp")),
    )


def _read_usage(value: object) -> Usage | None:
    if not isinstance(value, dict):
        return None
    found = ((key, count_or_none(value.get(key))) for key in _TOKENS)
    counts: dict[str, Any] = {key: count for key, count in found if count is not None}
    return Usage(**counts) if counts else None


def _write_model(message: Message, results: dict[str, tuple[ToolResult, int]]) -> Json:
    record: Json = {"type": "gemini"}
    if content.in_natural_order(message.parts):
        plain = [part for part in message.parts if not isinstance(part, Thought | ToolCall)]
        record["content"] = content.encode_content(plain)
        thoughts = [part for part in message.parts if isinstance(part, Thought)]
        record |= {"thoughts": [_write_thought(each) for each in thoughts]} if thoughts else {}
    else:
        record["content"] = [content.encode_part(part) for part in message.parts]
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
    written: Json = {"id": call.id, "name": call.name, "args": arguments_object(call.arguments)}
    if answer is None:
        return written | {"status": "scheduled"}
    result, time = answer
    return written | {
        "status": result.status or ("error" if result.is_error else "success"),
        "timestamp": format_zulu(time if result.time is None else result.time),
        "result": [content.encode_response(result)],
    }
