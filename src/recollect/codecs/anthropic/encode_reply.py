"""A reply as Anthropic's API would send it, in one piece or as a stream of events.

Guarantees: the official SDK accepts it as a reply, and decoding it gives the same message, except
for content that the format cannot carry (files, a thought's subject, an unknown end). The id of an
encoded reply follows from its content.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from recollect.codecs.anthropic.decode_reply import has_content
from recollect.codecs.anthropic.encode_message import (
    OF_MODEL,
    RequestBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    describe_unsent_file,
    encode_arguments,
    encode_known_block,
    encode_thought,
)
from recollect.codecs.foreign_json import encode, parse_object, replace_surrogates
from recollect.entries import (
    FileRef,
    InlineData,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    Unknown,
    Usage,
)

_REASONS = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "safety": "refusal"}


def encode_reply(reply: Message) -> bytes:
    reply = replace_surrogates(reply)
    blocks = _encode_blocks(reply)
    body = _envelope(reply, blocks) | {
        "content": blocks,
        "stop_reason": _reason(reply),
        "usage": _input_counts(reply.usage) | _output_counts(reply.usage),
    }
    return encode(body)


def encode_stream(reply: Message) -> Iterator[bytes]:
    reply = replace_surrogates(reply)
    blocks = _encode_blocks(reply)
    start = _envelope(reply, blocks) | {
        "content": [],
        "usage": _input_counts(reply.usage) | {"output_tokens": 0},
    }
    yield _event("message_start", message=start)
    for index, block in enumerate(blocks):
        begin, deltas = _split_block(block)
        yield _event("content_block_start", index=index, content_block=begin)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end = {"stop_reason": _reason(reply), "stop_sequence": None}
    yield _event("message_delta", delta=end, usage=_output_counts(reply.usage))
    if reply.finish not in ("", "interrupted"):  # one that broke off has no end
        yield _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    data = encode({"type": kind, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def _encode_blocks(reply: Message) -> list[RequestBlock]:
    blocks = (_encode_block(part) for part in reply.parts if has_content(part))
    return [block for block in blocks if block is not None]


def _encode_block(part: Part) -> RequestBlock | None:
    if isinstance(part, Text):
        return TextBlock(part.text)
    if isinstance(part, Thought):
        return encode_thought(part)
    if isinstance(part, ToolCall):
        return ToolUseBlock(part.id, part.name, encode_arguments(part, []))
    if isinstance(part, InlineData | FileRef):
        return describe_unsent_file(part, "a reply of this format holds no files", [])
    return encode_known_block(part, OF_MODEL) if isinstance(part, Unknown) else None


def _split_block(block: RequestBlock) -> tuple[RequestBlock, list[dict[str, str]]]:
    """A block as it begins, and the deltas that complete it."""
    if isinstance(block, TextBlock):
        return TextBlock(""), [{"type": "text_delta", "text": block.text}]
    if isinstance(block, ThinkingBlock):
        pieces = [{"type": "thinking_delta", "thinking": block.thinking}] if block.thinking else []
        if block.signature:
            pieces.append({"type": "signature_delta", "signature": block.signature})
        return ThinkingBlock("", ""), pieces
    if isinstance(block, ToolUseBlock):
        begin = ToolUseBlock(block.id, block.name, msgspec.Raw(b"{}"))
        text = bytes(block.input).decode()
        return begin, [{"type": "input_json_delta", "partial_json": text if text != "{}" else ""}]
    if isinstance(block, msgspec.Raw):  # an event's data is one line
        return msgspec.Raw(msgspec.json.format(bytes(block), indent=-1)), []
    return block, []


def _envelope(reply: Message, blocks: list[RequestBlock]) -> dict[str, Any]:
    digest = blake2b(encode(blocks), digest_size=12).hexdigest()
    return {
        "id": f"msg_{digest}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": None,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": None,
    }


def _reason(reply: Message) -> str | None:
    if reply.finish != "other":
        return _REASONS.get(reply.finish)
    reason = (parse_object(reply.extra) or {}).get("finish_reason")
    return "pause_turn" if reason == "pause_turn" else "end_turn"


def _input_counts(usage: Usage | None) -> dict[str, int]:
    usage = usage or Usage()
    cached, written = max(usage.cached or 0, 0), max(usage.written, 0)
    return {
        "input_tokens": max(usage.input - cached - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": cached,
    }


def _output_counts(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    counts: dict[str, Any] = {"output_tokens": max(usage.output, 0)}
    if usage.thoughts > 0:
        counts["output_tokens_details"] = {"thinking_tokens": usage.thoughts}
    return counts
