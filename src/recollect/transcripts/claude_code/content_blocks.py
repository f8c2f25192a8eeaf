"""Claude Code's content blocks as our parts. Unknown blocks are stored whole."""

from __future__ import annotations

from collections.abc import Callable

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
from recollect.transcripts.json_values import (
    Json,
    decode_base64,
    quick_json_text,
    string_or_empty,
)

_UNKNOWN_TYPE = "claude-code"  # the type under which an unknown block is stored


def content_blocks(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        return []
    texts = ({"type": "text", "text": item} if isinstance(item, str) else item for item in content)
    return [block for block in texts if isinstance(block, dict)]


def joined_text(content: object) -> str:
    texts = (block.get("text") for block in content_blocks(content) if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def parse_parts(content: object, tool_name: Callable[[str], str]) -> list[Part]:
    """`tool_name`: the tool of a call, which a result does not repeat."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    return [_parse_part(block, tool_name) for block in content_blocks(content)]


def _parse_part(block: Json, tool_name: Callable[[str], str]) -> Part:
    kind = block.get("type")
    if kind == "thinking" and isinstance(text := block.get("thinking"), str):
        return Thought(text=text, signature=string_or_empty(block.get("signature")))
    if kind == "tool_use" and isinstance(id_ := block.get("id"), str):
        arguments = quick_json_text(block.get("input", {}))
        return ToolCall(id=id_, name=string_or_empty(block.get("name")), arguments=arguments)
    if kind == "tool_result" and isinstance(id_ := block.get("tool_use_id"), str):
        return ToolResult(
            call_id=id_,
            name=tool_name(id_),
            content=tuple(_parse_content(inner) for inner in content_blocks(block.get("content"))),
            is_error=block.get("is_error") is True,
        )
    return _parse_content(block)


def _parse_content(block: Json) -> Content:
    kind, source = block.get("type"), block.get("source")
    if kind == "text" and isinstance(text := block.get("text"), str):
        return Text(text=text)
    if kind in ("image", "document") and isinstance(source, dict):
        mime = string_or_empty(source.get("media_type"))
        if isinstance(url := source.get("url"), str):
            return FileRef(mime=mime, uri=url)
        if (data := decode_base64(source.get("data"))) is not None:
            return InlineData(mime=mime, data=data)
    return Unknown(data=json_text({"type": _UNKNOWN_TYPE, "block": block}))
