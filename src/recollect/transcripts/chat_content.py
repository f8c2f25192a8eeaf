"""The contents of chat messages as programs around OpenAI's and Anthropic's formats store them: a
text, or a list of parts. A part of no known shape is stored whole, as `Unknown`."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from recollect.codecs.openai.decode_parts import decode_part
from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Part,
    Text,
    ToolCall,
    Unknown,
    json_text,
)
from recollect.transcripts.claude_code.content_blocks import parse_parts as parse_blocks
from recollect.transcripts.json_values import Json, object_or_empty, string_or_empty

_UNKNOWN_TYPE = "chat"  # the type under which an unknown part is stored
_BLOCKS = ("thinking", "tool_use", "tool_result", "image", "document")  # Anthropic's
_SHAPES = ("text", "image_url", "input_text", "output_text", "refusal", "input_audio", "file")


def parse_content(content: object) -> tuple[Part, ...]:
    """An empty text is no part; a number or an object counts as a list of one."""
    if content is None or content == "":
        return ()
    items = content if isinstance(content, list) else [content]
    return tuple(_parse_part(item) for item in items)


def parse_result_content(content: object) -> tuple[Content, ...]:
    """The content of a tool's result, which has no calls, thoughts or results in it."""
    items = content if isinstance(content, list) else [content]
    parts = zip(parse_content(content), items, strict=False)
    return tuple(part if isinstance(part, Content) else _unknown(item) for part, item in parts)


def encode_content(parts: Sequence[Part]) -> list[Json]:
    """The parts as a list; need not be exact, see `record_conversion`."""
    return [_encode_part(part) for part in parts if not isinstance(part, ToolCall)]


def parse_call(value: Json, fallback_id: str) -> ToolCall:
    """A call in any of the shapes {tool_name, arguments}, {id, function: {name, arguments}} and
    {id, name, arguments}. Arguments that are a text stay that text."""
    function = object_or_empty(value.get("function"))
    names = (value.get("tool_name"), function.get("name"), value.get("name"))
    arguments = value.get("arguments", function.get("arguments", {}))
    return ToolCall(
        id=string_or_empty(value.get("id")) or fallback_id,
        name=next(filter(None, map(string_or_empty, names)), ""),
        arguments=(arguments or "{}") if isinstance(arguments, str) else json_text(arguments),
    )


def _parse_part(item: object) -> Part:
    if isinstance(item, str):
        return Text(text=item)
    if not isinstance(item, dict):
        return _unknown(item)
    kind = item.get("type")
    found: Part | None = None
    if kind in _BLOCKS:
        (found,) = parse_blocks([item], lambda _: "")
    elif kind in _SHAPES:
        found = decode_part(item)
    elif "type" not in item and isinstance(text := item.get("text"), str):
        found = Text(text=text)
    return _unknown(item) if found is None or isinstance(found, Unknown) else found


def _unknown(item: object) -> Unknown:
    return Unknown(data=json_text({"type": _UNKNOWN_TYPE, "part": item}))


def _encode_part(part: Part) -> Any:
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case InlineData():
            data = base64.b64encode(part.data).decode("ascii")
            return {"type": "image_url", "image_url": {"url": f"data:{part.mime};base64,{data}"}}
        case FileRef():
            return {"type": "image_url", "image_url": {"url": part.uri}}
        case Unknown():
            value = json.loads(part.data)
            is_ours = isinstance(value, dict) and value.get("type") == _UNKNOWN_TYPE
            return value.get("part") if is_ours else {}
    return {}
