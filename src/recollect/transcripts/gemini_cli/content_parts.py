"""Gemini's parts and ours. Reads whatever has the right shape and skips over the rest."""

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
from recollect.transcripts.json_patch import Json
from recollect.transcripts.json_values import decode_base64, string_or_empty
from recollect.transcripts.tolerant_json import too_deep

_STRANGE = "gemini"  # the type under which a part that we do not know is kept


def is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**53


def as_list(value: object) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def parse_parts(content: object) -> list[Part]:
    if content == "":
        return []
    return [part for item in as_list(content) for part in _part(item)]


def _part(item: object) -> list[Part]:
    if isinstance(item, str):
        return [Text(text=item)]
    if not isinstance(item, dict):
        return []
    signature = item.get("thoughtSignature")
    signature = signature if isinstance(signature, str) else ""
    if isinstance(text := item.get("text"), str):
        if item.get("thought") is True:
            return [Thought(text=text, signature=signature)]
        return [Text(text=text)]
    if isinstance(call := item.get("functionCall"), dict):
        return [_call(call, signature)]
    if isinstance(response := item.get("functionResponse"), dict):
        return [_response(response)]
    return [_data(item)]


def _call(call: Json, signature: str) -> ToolCall:
    name, id_ = call.get("name"), call.get("id")
    name = name if isinstance(name, str) else ""
    return ToolCall(
        id=id_ if isinstance(id_, str) and id_ else name,
        name=name,
        arguments=json_text(call.get("args", {})),
        signature=signature,
    )


def _response(response: Json) -> ToolResult:
    name, id_ = response.get("name"), response.get("id")
    name = name if isinstance(name, str) else ""
    body = response.get("response")
    return ToolResult(
        call_id=id_ if isinstance(id_, str) and id_ else name,
        name=name,
        content=tuple(parse_result_content({"functionResponse": response})),
        is_error=isinstance(body, dict) and "error" in body,
    )


def _data(item: Json) -> InlineData | FileRef | Unknown:
    inline, file = item.get("inlineData"), item.get("fileData")
    if isinstance(inline, dict) and (data := decode_base64(inline.get("data"))) is not None:
        return InlineData(mime=string_or_empty(inline.get("mimeType")), data=data)
    if isinstance(file, dict) and isinstance(file.get("fileUri"), str):
        return FileRef(mime=string_or_empty(file.get("mimeType")), uri=file["fileUri"])
    return Unknown(data=json_text({"type": _STRANGE, "part": item}))


def parse_result_content(item: object) -> list[Content]:
    """What a result holds: the output of a function response, or any other part."""
    if isinstance(item, dict) and isinstance(response := item.get("functionResponse"), dict):
        body = response.get("response")
        if isinstance(body, dict):
            for key in ("output", "error"):
                if isinstance(body.get(key), str):
                    return [Text(text=body[key])]
        return [] if body is None else [Text(text=json_text(body))]
    return [part for part in _part(item) if isinstance(part, Content)]


# --- out ---------------------------------------------------------------------------------------


def in_natural_order(parts: Sequence[Part]) -> bool:
    """Thoughts, then content, then calls, with nothing that only `content` can tell."""
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
            known = isinstance(value, dict) and value.get("type") == _STRANGE
            inner = value.get("part") if known else None
            return inner if isinstance(inner, dict) else {"text": ""}


def encode_response(result: ToolResult) -> Json:
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    body = {"error" if result.is_error else "output": text}
    return {"functionResponse": {"id": result.call_id, "name": result.name, "response": body}}


def arguments_object(arguments: str) -> Any:
    """The arguments as JSON; an empty object for what is none, or holds what JSON may not."""
    try:
        value = json.loads(arguments)
        json_text(value)
    except (ValueError, RecursionError):
        return {}
    # deeper than that, and reading the file again would refuse it
    return value if isinstance(value, dict) and not too_deep(value, 80) else {}
