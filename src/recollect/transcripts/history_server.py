"""The history server's session files: one JSON object, read and written.

A record is {role: user|assistant|system, content, timestamp, tool_calls, metadata}, a call
{tool_name, arguments, result, status, duration, timestamp}: it has no id, so one is derived. In our
log the results are a user message after the assistant's.

Programs that call OpenAI's interface put its messages into these files. Roles `developer` (our
`system`), `model`, `tool` and `function` (a result, which names its call by `tool_call_id`, by
`name`, or by following it), calls with an id and a `function`, and contents that are lists of
parts are read as what they are. A message of any other role is nobody's words: it becomes context,
and a problem names the role.

The format has no field for: ids of messages and calls, thoughts, inline data, file references,
models, finish reasons, token usage, results that are not one text, malformed arguments, notes,
requests and edits. They are carried in a message's `metadata.recollect` (the server lets others add
to the metadata); see `record_conversion`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recollect.entries import (
    Context,
    Entry,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    json_text,
)
from recollect.text import clip
from recollect.transcripts.chat_content import (
    encode_content,
    parse_call,
    parse_content,
    parse_result_content,
)
from recollect.transcripts.json_values import Json, objects_in, string_or_empty
from recollect.transcripts.record_format import (
    ParsedBody,
    RecordFormat,
    arguments_object,
    get_tag,
    results_by_call,
    with_results,
)
from recollect.transcripts.record_source import RecordSource
from recollect.transcripts.session_file_format import SessionFileFormat, safe_file_name
from recollect.transcripts.timestamps import format_zoneless, parse_time, to_datetime
from recollect.transcripts.transcript import ImportProblem, Transcript, report_non_objects
from recollect.user_text import find_context

NAME = "history-server"
_ROLES_IN_FILE = {"user": "user", "model": "assistant", "system": "system"}
_ROLES = {theirs: ours for ours, theirs in _ROLES_IN_FILE.items()}
_ROLES |= {"developer": "system", "model": "model"}
_TOOL_ROLES = ("tool", "function")
_SHOWN_CHARACTERS = 60  # of a role or an id in a problem
_FAILED = ("error", "failed", "failure", "timeout", "cancelled")
_PENDING = "pending"


def _read_record(record: Json, key: str) -> list[ParsedBody]:
    role, time = record.get("role"), parse_time(record.get("timestamp"))
    if role in _TOOL_ROLES:
        message = Message(role="user", parts=(_read_tool_record(record),), extra=_shape(record))
        return [ParsedBody(message, time)]
    parts: list[Part] = [*parse_content(record.get("content"))]
    context = _find_context(role, parts)
    results: list[ToolResult] = []
    for position, each in enumerate(objects_in(record.get("tool_calls"))):
        call = parse_call(each, f"{key[:12]}-{position}")
        parts.append(call)
        if result := _read_result(each, call):
            results.append(result)
    ours: Any = _ROLES.get(role, "user") if isinstance(role, str) else "user"
    message = Message(role=ours, parts=tuple(parts), context=context, extra=_shape(record))
    return with_results(ParsedBody(message, time), results)


def _find_context(role: object, parts: Sequence[Part]) -> Context:
    if role == "user":
        return find_context(parts)
    return "" if role in (*_ROLES,) else "aside"  # any JSON value, perhaps one without a hash


def _shape(record: Json) -> str:
    """What writing needs to know to write the record as it was; empty for most."""
    role, content = record.get("role"), record.get("content")
    shape: Json = {} if role in _ROLES_IN_FILE.values() else {"role": role}
    shape |= {"parts": True} if isinstance(content, list) else {}
    return json_text({NAME: shape}) if shape else ""


def _read_tool_record(record: Json) -> ToolResult:
    """Without an id of its call where the record has none: the reader of the file finds it."""
    status = string_or_empty(record.get("status"))
    return ToolResult(
        call_id=string_or_empty(record.get("tool_call_id")),
        name=string_or_empty(record.get("name")) or string_or_empty(record.get("tool_name")),
        content=parse_result_content(record.get("content")),
        is_error=record.get("is_error") is True or status.lower() in _FAILED,
        status=status,
        duration=_seconds(record.get("duration")),
    )


def _write_record(run: Sequence[Entry], _record_id: str) -> Json:
    message, time = run[0].body, run[0].time
    assert isinstance(message, Message)
    results, shape = results_by_call(run), get_tag(NAME, message)
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    written: Json = {
        "role": shape.get("role", _ROLES_IN_FILE[message.role]),
        "content": _write_content(message.parts, as_list="parts" in shape),
        "timestamp": format_zoneless(time),
        "tool_calls": [_write_call(call, results.get(call.id), time) for call in calls],
        "metadata": {},
    }
    if shape.get("role") in _TOOL_ROLES and isinstance(result := message.parts[0], ToolResult):
        content = _write_content(result.content, as_list="parts" in shape)
        written |= {"tool_call_id": result.call_id, "name": result.name, "content": content}
    return written


def _write_content(parts: Sequence[Part], *, as_list: bool) -> str | list[Json]:
    if as_list:
        return encode_content(parts)
    return "\n".join(part.text for part in parts if isinstance(part, Text))


RECORD_FORMAT = RecordFormat(
    name=NAME, bodies=(Message,), read=_read_record, write=_write_record, mark_inside="metadata"
)


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


def read(records: RecordSource) -> Transcript:
    found = (value for _, value in records.load_all())
    return read_object(next(value for value in found if isinstance(value.get("messages"), list)))


def read_object(value: Json) -> Transcript:
    header = {key: item for key, item in value.items() if key != "messages"}
    records = objects_in(value["messages"])
    # calls whose results have a record of their own
    own = (record.get("tool_call_id") for record in records if record.get("role") in _TOOL_ROLES)
    answered = frozenset(id_ for id_ in own if isinstance(id_, str) and id_)
    transcript = FILE_FORMAT.read(header, records, answered=answered)
    problems = (*report_non_objects(value["messages"]), *_report_roles(value["messages"]))
    problems += tuple(_report_orphans(transcript))
    return msgspec.structs.replace(transcript, problems=problems)


def _report_roles(messages: Sequence[object]) -> Iterator[ImportProblem]:
    for position, record in enumerate(messages, 1):
        role = record.get("role") if isinstance(record, dict) else "user"
        if role not in (*_ROLES, *_TOOL_ROLES):
            shown = clip(role if isinstance(role, str) else json_text(role), _SHOWN_CHARACTERS)
            known = "user, assistant, system, developer or tool"
            reason = f"message {position} has the role {shown!r}, not {known}; read as context"
            yield ImportProblem(0, reason)


def _report_orphans(transcript: Transcript) -> Iterator[ImportProblem]:
    """Results of calls that are not in the file."""
    messages = [entry.body for entry in transcript.entries if isinstance(entry.body, Message)]
    calls = {part.id for body in messages for part in body.parts if isinstance(part, ToolCall)}
    for body in messages:
        for part in body.parts:
            if isinstance(part, ToolResult) and part.call_id not in calls:
                what = clip(part.call_id or part.name or "?", _SHOWN_CHARACTERS)
                yield ImportProblem(0, f"the file has a result, but not the call {what!r}")
