"""The history server's session files: one JSON object, read and written.

A record is {role: user|assistant|system, content, timestamp, tool_calls, metadata}, a call
{tool_name, arguments, result, status, duration, timestamp}: it has no id, so one is derived. In our
log the results are a user message after the assistant's.

The format has no field for: ids of messages and calls, thoughts, inline data, file references,
models, finish reasons, token usage, results that are not one text, malformed arguments, notes,
requests and edits. They are carried in a message's `metadata.recollect` (the server lets others add
to the metadata); see `record_conversion`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.entries import Entry, Message, Text, ToolCall, ToolResult, json_text
from recollect.transcripts.json_values import Json, objects_in, string_or_empty
from recollect.transcripts.record_format import (
    ParsedBody,
    RecordFormat,
    arguments_object,
    results_by_call,
    with_results,
)
from recollect.transcripts.session_file_format import SessionFileFormat, safe_file_name
from recollect.transcripts.timestamps import format_zoneless, parse_time, to_datetime
from recollect.transcripts.transcript import Transcript, report_non_objects

NAME = "history-server"
_ROLES = {"user": "user", "assistant": "model", "system": "system"}
_ROLES_IN_FILE = {ours: theirs for theirs, ours in _ROLES.items()}
_FAILED = ("error", "failed", "failure", "timeout", "cancelled")
_PENDING = "pending"


def _read_record(record: Json, key: str) -> list[ParsedBody]:
    content = record.get("content")
    role: Any = _ROLES.get(str(record.get("role")), "user")
    parts: list[Text | ToolCall] = []
    if isinstance(content, str) and content:
        parts.append(Text(text=content))
    results: list[ToolResult] = []
    for position, each in enumerate(objects_in(record.get("tool_calls"))):
        call = _read_call(each, f"{key[:12]}-{position}")
        parts.append(call)
        if result := _read_result(each, call):
            results.append(result)
    message = Message(role=role, parts=tuple(parts))
    return with_results(ParsedBody(message, parse_time(record.get("timestamp"))), results)


def _write_record(run: Sequence[Entry], _record_id: str) -> Json:
    message, time = run[0].body, run[0].time
    assert isinstance(message, Message)
    results = results_by_call(run)
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return {
        "role": _ROLES_IN_FILE[message.role],
        "content": "\n".join(texts),
        "timestamp": format_zoneless(time),
        "tool_calls": [_write_call(call, results.get(call.id), time) for call in calls],
        "metadata": {},
    }


RECORD_FORMAT = RecordFormat(
    name=NAME, bodies=(Message,), read=_read_record, write=_write_record, mark_inside="metadata"
)


def _read_call(value: Json, id_: str) -> ToolCall:
    name = string_or_empty(value.get("tool_name"))
    return ToolCall(id=id_, name=name, arguments=json_text(value.get("arguments", {})))


def _read_result(value: Json, call: ToolCall) -> ToolResult | None:
    status, output = string_or_empty(value.get("status")), value.get("result")
    if output is None or (output == "" and status == _PENDING):
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
        pending: Json = {"result": "", "status": _PENDING, "duration": 0.0}
        return written | pending | {"timestamp": format_zoneless(time)}
    result, answered = answer
    return written | {
        "result": "\n".join(part.text for part in result.content if isinstance(part, Text)),
        "status": result.status or ("error" if result.is_error else "success"),
        "duration": _seconds(result.duration) or 0.0,
        "timestamp": format_zoneless(answered if result.time is None else result.time),
    }


def file_names(session_id: str, start: int) -> tuple[str]:
    """`session_YYYYMMDD_<session_id>.json`"""
    date = to_datetime(start).isoformat()[:10].replace("-", "")
    return (f"session_{date}_{safe_file_name(session_id)}.json",)


FILE_FORMAT = SessionFileFormat(
    records=RECORD_FORMAT,
    id_field="session_id",
    start_field="created_at",
    update_field="updated_at",
    format_time=format_zoneless,
    file_names=file_names,
)


def detect(value: Json) -> bool:
    about_session = "session_id" in value or {"created_at", "updated_at"} <= value.keys()
    return about_session and isinstance(value.get("messages"), list)


def read(records: Sequence[tuple[int, Json]]) -> Transcript:
    whole_file = (value for _, value in records if isinstance(value.get("messages"), list))
    return read_object(next(whole_file))


def read_object(value: Json) -> Transcript:
    header = {key: item for key, item in value.items() if key != "messages"}
    transcript = FILE_FORMAT.read(header, objects_in(value["messages"]))
    problems = report_non_objects(value["messages"])
    return msgspec.structs.replace(transcript, problems=problems)
