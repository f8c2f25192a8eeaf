"""Between the parts of Gemini's messages and ours. Anything of another shape is skipped."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
    json_text,
)
from recollect.transcripts.json_values import Json, decode_base64, string_or_empty
from recollect.transcripts.record_format import arguments_object

_UNKNOWN_TYPE = "gemini"  # the type under which an unknown part is stored


def as_list(value: object) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def parse_parts(content: object) -> list[Part]:
    if content == "":
        return []
    return [part for item in as_list(content) for part in _parse_part(item)]


def _parse_part(item: object) -> list[Part]:
    if isinstance(item, str):
        return [Text(text=item)]
    if not isinstance(item, dict):
        return []
    signature = string_or_empty(item.get("thoughtSignature"))
    if isinstance(text := item.get("text"), str):
        if item.get("thought") is True:
            return [Thought(text=text, signature=signature)]
        return [Text(text=text)]
    if isinstance(call := item.get("functionCall"), dict):
        return [_parse_call(call, signature)]
    if isinstance(response := item.get("functionResponse"), dict):
        return [_parse_response(response)]
    return [_parse_data(item)]


def _parse_call(call: Json, signature: str) -> ToolCall:
    name = string_or_empty(call.get("name"))
    return ToolCall(
        id=string_or_empty(call.get("id")) or name,
        name=name,
        arguments=json_text(call.get("args", {})),
        signature=signature,
    )


def _parse_response(response: Json) -> ToolResult:
    name, body = string_or_empty(response.get("name")), response.get("response")
    return ToolResult(
        call_id=string_or_empty(response.get("id")) or name,
        name=name,
        content=tuple(parse_result_content({"functionResponse": response})),
        is_error=isinstance(body, dict) and "error" in body,
    )


def _parse_data(item: Json) -> InlineData | FileRef | Unknown:
    inline, file = item.get("inlineData"), item.get("fileData")
    if isinstance(inline, dict) and (data := decode_base64(inline.get("data"))) is not None:
        return InlineData(mime=string_or_empty(inline.get("mimeType")), data=data)
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        return FileRef(mime=string_or_empty(file.get("mimeType")), uri=file["fileUri"])
    return Unknown(data=json_text({"type": _UNKNOWN_TYPE, "part": item}))


def parse_result_content(item: object) -> list[Content]:
    """The content of a result: the output of a function response, or any other part."""
    if isinstance(item, dict) and isinstance(response := item.get("functionResponse"), dict):
        body = response.get("response")
        if isinstance(body, dict):
            for key in ("output", "error"):
                if isinstance(body.get(key), str):
                    return [Text(text=body[key])]
        return [] if body is None else [Text(text=json_text(body))]
    return [part for part in _parse_part(item) if isinstance(part, Content)]


def in_natural_order(parts: Sequence[Part]) -> bool:
    """Thoughts, then content, then calls, with nothing that only `content` has a field for."""
    ranks = [0 if isinstance(p, Thought) else 2 if isinstance(p, ToolCall) else 1 for p in parts]
    signed = any(isinstance(p, Thought | ToolCall) and p.signature for p in parts)
    return ranks == sorted(ranks) and not signed


def encode_content(parts: Sequence[Part]) -> str | list[Json]:
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].text:
        return parts[0].text
    return [encode_part(part) for part in parts]


def encode_part(part: Part) -> Json:
    match part:
        case Text():
            return {"text": part.text}
        case Thought():
            signed = {"thoughtSignature": part.signature} if part.signature else {}
            return {"text": part.text, "thought": True, **signed}
        case ToolCall():
            signed = {"thoughtSignature": part.signature} if part.signature else {}
            call = {"id": part.id, "name": part.name, "args": arguments_object(part.arguments)}
            return {"functionCall": call, **signed}
        case ToolResult():
            return encode_response(part)
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


def encode_response(result: ToolResult) -> Json:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    body = {"error" if result.is_error else "output": text}
    return {"functionResponse": {"id": result.call_id, "name": result.name, "response": body}}
