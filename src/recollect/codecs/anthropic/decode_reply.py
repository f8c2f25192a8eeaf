"""Replies in Anthropic's format, whole: read as a message, and written as the API would.

Guarantees: what is written is what the official SDK takes for a reply, and reading it gives the
same message, but for what the format has no place for (files, a thought's subject, an end that
nobody knows). What is no reply is a `BadReply` that names it; an error that came instead is a
`ProviderFailed`. The id of a written reply follows from its content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from recollect.codecs.anthropic.decode_parts import decode_json, decode_parts
from recollect.codecs.anthropic.encode_message import (
    OF_MODEL,
    RedactedThinkingBlock,
    RequestBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    describe_unsent_file,
    encode_arguments,
    encode_thought,
    known_block,
    parse_object,
    replace_surrogates_in,
)
from recollect.codecs.provider_errors import bad_reply_from, make_printable, provider_error_from
from recollect.codecs.wire_protocol import Finish
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
    json_text,
)
from recollect.errors import BadInput, BadReply, ProviderFailed

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "safety",
}
_REASONS = {"stop": "end_turn", "calls": "tool_use", "length": "max_tokens", "safety": "refusal"}
# Of an error inside a stream the status is not told; this is what the API's documentation gives.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_MOST = 2**53  # tokens; more is nonsense that other readers of JSON could not count


class _AnthropicUsageDetails(msgspec.Struct, gc=False):
    thinking_tokens: int | float | None = None


class AnthropicUsage(msgspec.Struct, gc=False):
    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_creation_input_tokens: int | float | None = None
    cache_read_input_tokens: int | float | None = None
    output_tokens_details: _AnthropicUsageDetails | None = None


class AnthropicError(msgspec.Struct, gc=False):
    type: str | None = None
    message: str | None = None


class _AnthropicReply(msgspec.Struct, gc=False):
    type: str = ""
    content: list[msgspec.Raw] | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: AnthropicUsage | None = None
    error: AnthropicError | None = None


_decoder = msgspec.json.Decoder(_AnthropicReply)


def decode_reply(body: bytes) -> Message:
    try:
        reply = decode_json(body, _decoder)
        if reply.error is not None:
            raise error_from(reply.error)
        if reply.type != "message" and reply.content is None:
            raise bad_reply_from(body)
        parts = tuple(part for part in decode_parts(reply.content or ()) if _says(part))
    except BadInput as error:
        raise explain_unreadable(body, error) from error
    has_calls = any(isinstance(part, ToolCall) for part in parts)
    finish, unknown = map_finish(reply.stop_reason or "", has_calls=has_calls)
    return Message(
        role="model",
        parts=parts,
        model=reply.model or "",
        finish=finish,
        usage=merge_usage([reply.usage] if reply.usage else []),
        extra=json_text({"finish_reason": unknown}) if unknown else "",
    )


def error_from(error: AnthropicError) -> ProviderFailed:
    kind = error.type or ""
    return provider_error_from(error.message or "", _STATUS.get(kind, 0), kind)


def explain_unreadable(data: bytes, error: BadInput) -> BadReply:
    """For bytes that should have been JSON of the API, and why they are not."""
    if not data.lstrip().startswith(b"{"):
        return bad_reply_from(data)
    beginning = make_printable(data[:400].decode("utf-8", "replace"), 60)
    try:
        json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        return BadReply(f"half a JSON ({beginning})")
    except RecursionError:
        return BadReply(f"JSON nested too deeply ({beginning})")
    return BadReply(f"JSON of another kind ({beginning}): {make_printable(str(error), 200)}")


def map_finish(reason: str, *, has_calls: bool) -> tuple[Finish, str]:
    """How it ended, and the provider's own word where nobody here knows it."""
    if not reason:
        return "", ""
    finish = _FINISHES.get(reason, "other")
    if finish in ("stop", "calls"):
        return ("calls" if has_calls else "stop"), ""
    return finish, make_printable(reason, 100) if finish == "other" else ""


def merge_usage(counted: list[AnthropicUsage]) -> Usage | None:
    """Counts of a stream are of all of it so far: the last one that was told is right."""
    numbers = dict.fromkeys(("input", "made", "read", "output", "thoughts"), 0)
    for counts in counted:
        details = counts.output_tokens_details
        told = {
            "input": counts.input_tokens,
            "made": counts.cache_creation_input_tokens,
            "read": counts.cache_read_input_tokens,
            "output": counts.output_tokens,
            "thoughts": details.thinking_tokens if details is not None else None,
        }
        for name, number in told.items():
            if number is not None:
                numbers[name] = int(min(max(number, 0), _MOST))
    if not any(numbers.values()):
        return None
    total = numbers["input"] + numbers["made"] + numbers["read"]
    return Usage(
        input=total,
        output=numbers["output"],
        cached=numbers["read"],
        thoughts=numbers["thoughts"],
        total=total + numbers["output"],
    )


def _says(part: Part) -> bool:
    if isinstance(part, Text):
        return part.text != ""
    return not isinstance(part, Thought) or part.text != "" or part.signature != ""


# --- writing -----------------------------------------------------------------------------------


def encode_reply(reply: Message) -> bytes:
    reply = replace_surrogates_in(reply)
    blocks = _blocks(reply)
    body = _envelope(reply, blocks) | {
        "content": blocks,
        "stop_reason": _reason(reply),
        "usage": _input_counts(reply.usage) | _output_counts(reply.usage),
    }
    return msgspec.json.encode(body)


def encode_stream(reply: Message) -> Iterator[bytes]:
    reply = replace_surrogates_in(reply)
    blocks = _blocks(reply)
    start = _envelope(reply, blocks) | {
        "content": [],
        "usage": _input_counts(reply.usage) | {"output_tokens": 0},
    }
    yield _event("message_start", message=start)
    for index, block in enumerate(blocks):
        begin, deltas = _in_pieces(block)
        yield _event("content_block_start", index=index, content_block=begin)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    end = {"stop_reason": _reason(reply), "stop_sequence": None}
    yield _event("message_delta", delta=end, usage=_output_counts(reply.usage))
    yield _event("message_stop")


def _event(kind: str, **fields: object) -> bytes:
    data = msgspec.json.encode({"type": kind, **fields})
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def _blocks(reply: Message) -> list[RequestBlock]:
    written = (_block(part) for part in reply.parts if _says(part))
    return [block for block in written if block is not None]


def _block(part: Part) -> RequestBlock | None:
    if isinstance(part, Text):
        return TextBlock(part.text)
    if isinstance(part, Thought):
        return encode_thought(part)
    if isinstance(part, ToolCall):
        return ToolUseBlock(part.id, part.name, encode_arguments(part, []))
    if isinstance(part, InlineData | FileRef):
        return describe_unsent_file(part, "a reply of this format holds no files", [])
    return known_block(part, OF_MODEL) if isinstance(part, Unknown) else None


def _in_pieces(block: RequestBlock) -> tuple[object, list[dict[str, str]]]:
    """A block as it begins, and what follows of it."""
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
    assert isinstance(block, RedactedThinkingBlock)
    return block, []


def _envelope(reply: Message, blocks: list[RequestBlock]) -> dict[str, Any]:
    digest = blake2b(msgspec.json.encode(blocks), digest_size=12).hexdigest()
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
    told = (parse_object(reply.extra) or {}).get("finish_reason")
    return "pause_turn" if told == "pause_turn" else "end_turn"


def _input_counts(usage: Usage | None) -> dict[str, int]:
    usage = usage or Usage()
    cached = max(usage.cached, 0)
    return {
        "input_tokens": max(usage.input - cached, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
    }


def _output_counts(usage: Usage | None) -> dict[str, Any]:
    usage = usage or Usage()
    counts: dict[str, Any] = {"output_tokens": max(usage.output, 0)}
    if usage.thoughts > 0:
        counts["output_tokens_details"] = {"thinking_tokens": usage.thoughts}
    return counts
