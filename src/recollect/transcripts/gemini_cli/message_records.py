"""One message in Gemini CLI's session files.

A record is {id, timestamp, type, content, thoughts?, tokens?, model?, toolCalls?}. Calls and their
results are together in `toolCalls`; in our log the results are a user message after the model's.
When `content` itself holds calls or thoughts, it gives the order of everything.

The format has no field for: system messages (written as type `info`), finish reasons, durations,
more than one text in a result, thought signatures outside `content`, malformed arguments, parts of
unknown type, requests and edits. They are carried in the record's `recollect` field; see
`record_conversion`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from recollect.entries import (
    Content,
    Entry,
    FileRef,
    InlineData,
    Message,
    Note,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    Usage,
    json_text,
)
from recollect.tokens import believe_usage
from recollect.transcripts.json_values import (
    Json,
    decode_base64,
    object_or_empty,
    objects_in,
    quick_json_text,
    string_or_empty,
)
from recollect.transcripts.record_format import (
    ParsedBody,
    RecordFormat,
    arguments_object,
    results_by_call,
    with_results,
)
from recollect.transcripts.timestamps import format_zulu, parse_time
from recollect.user_text import find_context

NAME = "gemini"
_UNKNOWN_TYPE = "gemini"  # the type under which an unknown part is stored
_TOKENS = ("input", "output", "cached", "thoughts", "tool", "total")
FINISHED = ("success", "error", "cancelled")
# our own strings: msgspec leaves out a default only if it is the very same object
# beside an empty text, these are what the part says
_OTHER_KINDS = frozenset({"functionCall", "functionResponse", "inlineData", "fileData"})
_RANKS = {Thought: 0, ToolCall: 2}  # of parts in their natural order; all others are 1
_LEVELS = {"info": "info", "warning": "warning", "error": "error"}


def _read_record(record: Json, key: str) -> list[ParsedBody]:
    time, kind = parse_time(record.get("timestamp")), record.get("type")
    parts = parse_parts(record.get("content"))
    if kind == "user":
        message = Message(role="user", parts=tuple(parts), context=find_context(parts))
        return [ParsedBody(message, time)]
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
    return record | {"type": kind, "content": _encode_content(body.parts)}


RECORD_FORMAT = RecordFormat(
    name=NAME, bodies=(Message, Note), read=_read_record, write=_write_record, id_field="id"
)


def _read_model(record: Json, parts: list[Part], time: int | None, key: str) -> list[ParsedBody]:
    ordered = not _RANKS.keys().isdisjoint(map(type, parts))
    thoughts = [] if ordered else [_read_thought(t) for t in objects_in(record.get("thoughts"))]
    in_content = {part.id for part in parts if isinstance(part, ToolCall)}
    others: dict[str, ToolCall] = {}
    results: dict[str, ToolResult] = {}
    for position, each in enumerate(objects_in(record.get("toolCalls"))):
        call = _read_call(each, f"{key[:12]}-{position}")
        if call.id not in in_content:
            others.setdefault(call.id, call)
        if call.id not in results and (result := _read_result(each, call)):
            results[call.id] = result
    message = Message(
        role="model",
        parts=(*thoughts, *parts, *others.values()),
        model=string_or_empty(record.get("model")),
        usage=_read_usage(object_or_empty(record.get("tokens"))),
    )
    return with_results(ParsedBody(message, time), tuple(results.values()))


def _read_thought(value: Json) -> Thought:
    return Thought(
        text=string_or_empty(value.get("description")),
        subject=string_or_empty(value.get("subject")),
        time=parse_time(value.get("timestamp")),
    )


def _read_call(value: Json, fallback_id: str, signature: str = "") -> ToolCall:
    return ToolCall(
        id=string_or_empty(value.get("id")) or fallback_id,
        name=string_or_empty(value.get("name")),
        arguments=quick_json_text(value.get("args", {})),
        signature=signature,
    )


def _read_result(value: Json, call: ToolCall) -> ToolResult | None:
    status, output = string_or_empty(value.get("status")), value.get("result")
    if output is None and status not in FINISHED:
        return None
    return ToolResult(
        call_id=call.id,
        name=call.name,
        content=tuple(part for item in _as_list(output) for part in _result_content(item)),
        is_error=status in ("error", "cancelled"),
        status=status,
        time=parse_time(value.get("timestamp")),
    )


def _read_usage(value: Json) -> Usage | None:
    counts: Json = {key: count for key in _TOKENS if type(count := value.get(key)) is int}
    return believe_usage(Usage(**counts)) if counts else None


def _as_list(value: object) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def parse_parts(content: object) -> list[Part]:
    """Anything of another shape than a part is skipped."""
    items = [] if content == "" else _as_list(content)
    return [part for item in items if (part := _parse_part(item)) is not None]


def _parse_part(item: object) -> Part | None:
    if isinstance(item, str):
        return Text(text=item)
    if not isinstance(item, dict):
        return None
    signature = string_or_empty(item.get("thoughtSignature"))
    text = item.get("text")
    if isinstance(text, str) and (text or not item.keys() & _OTHER_KINDS):
        is_thought = item.get("thought") is True
        return Thought(text=text, signature=signature) if is_thought else Text(text=text)
    if isinstance(call := item.get("functionCall"), dict):
        return _read_call(call, string_or_empty(call.get("name")), signature)
    if isinstance(response := item.get("functionResponse"), dict):
        name, body = string_or_empty(response.get("name")), response.get("response")
        return ToolResult(
            call_id=string_or_empty(response.get("id")) or name,
            name=name,
            content=tuple(_result_content(item)),
            is_error=isinstance(body, dict) and "error" in body,
        )
    return _parse_data(item)


def _parse_data(item: Json) -> InlineData | FileRef | Unknown:
    inline, file = item.get("inlineData"), item.get("fileData")
    if isinstance(inline, dict) and (data := decode_base64(inline.get("data"))) is not None:
        return InlineData(mime=string_or_empty(inline.get("mimeType")), data=data)
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        return FileRef(mime=string_or_empty(file.get("mimeType")), uri=file["fileUri"])
    return Unknown(data=json_text({"type": _UNKNOWN_TYPE, "part": item}))


def _result_content(item: object) -> list[Content]:
    """The content of a result: the output of a function response, or any other part."""
    if isinstance(item, dict) and isinstance(response := item.get("functionResponse"), dict):
        body = response.get("response")
        for key in ("output", "error"):
            if isinstance(text := object_or_empty(body).get(key), str):
                return [Text(text=text)]
        return [] if body is None else [Text(text=json_text(body))]
    part = _parse_part(item)
    return [part] if isinstance(part, Content) else []


def _write_model(message: Message, results: dict[str, tuple[ToolResult, int]]) -> Json:
    parts, usage, in_order = message.parts, message.usage, _in_natural_order(message.parts)
    plain = [part for part in parts if type(part) not in _RANKS] if in_order else parts
    content = _encode_content(plain) if in_order else [_encode_part(part) for part in parts]
    written: Json = {"type": "gemini", "content": content}
    if in_order and (thoughts := [_write_thought(p) for p in parts if isinstance(p, Thought)]):
        written["thoughts"] = thoughts
    if usage is not None:
        written["tokens"] = {key: getattr(usage, key) or 0 for key in _TOKENS}
    if message.model:
        written["model"] = message.model
    if calls := [_write_call(p, results.get(p.id)) for p in parts if isinstance(p, ToolCall)]:
        written["toolCalls"] = calls
    return written


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
        "result": [_encode_response(result)],
    }


def _in_natural_order(parts: Sequence[Part]) -> bool:
    """Thoughts, then content, then calls, with nothing that only `content` has a field for."""
    reached = 0
    for part in parts:
        rank = _RANKS.get(type(part), 1)
        if rank < reached or (isinstance(part, Thought | ToolCall) and part.signature):
            return False
        reached = rank
    return True


def _encode_content(parts: Sequence[Part]) -> str | list[Json]:
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].text:
        return parts[0].text
    return [_encode_part(part) for part in parts]


def _encode_part(part: Part) -> Json:
    signature = getattr(part, "signature", "")
    signed = {"thoughtSignature": signature} if signature else {}
    match part:
        case Text():
            return {"text": part.text}
        case Thought():
            return {"text": part.text, "thought": True, **signed}
        case ToolCall():
            call = {"id": part.id, "name": part.name, "args": arguments_object(part.arguments)}
            return {"functionCall": call, **signed}
        case ToolResult():
            return _encode_response(part)
        case InlineData():
            data = base64.b64encode(part.data).decode("ascii")
            return {"inlineData": {"mimeType": part.mime, "data": data}}
        case FileRef():
            return {"fileData": {"mimeType": part.mime, "fileUri": part.uri}}
        case Unknown():
            value = json.loads(part.data)
            known = isinstance(value, dict) and value.get("type") == _UNKNOWN_TYPE
            inner = value.get("part") if known else None
            return inner if isinstance(inner, dict) else {"text": ""}


def _encode_response(result: ToolResult) -> Json:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    body = {"error" if result.is_error else "output": text}
    return {"functionResponse": {"id": result.call_id, "name": result.name, "response": body}}
