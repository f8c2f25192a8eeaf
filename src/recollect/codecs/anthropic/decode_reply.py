"""A reply of Anthropic's API that came in one piece, and what it shares with streamed ones.

Bytes that are not a reply raise a `BadReply` that names them; an error that came instead of a reply
raises a `ProviderFailed`.
"""

from __future__ import annotations

import json

import msgspec

from recollect.codecs.anthropic.decode_parts import decode_json, decode_parts
from recollect.codecs.foreign_json import clamp_count
from recollect.codecs.provider_errors import (
    bad_reply_from,
    incomplete_json,
    make_printable,
    provider_error_from,
)
from recollect.codecs.reply_assembly import ReplyAssembly
from recollect.codecs.wire_protocol import Finish
from recollect.entries import Message, Part, Text, Thought, Usage
from recollect.errors import BadInput, BadReply, ProviderFailed

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "safety",
}
# The status of an error inside a stream is not sent; the API's documentation gives these.
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
        parts = decode_parts(reply.content or ())
    except BadInput as error:
        raise explain_unreadable(body, error) from error
    assembly = ReplyAssembly()
    for part in parts:
        if has_content(part):
            assembly.add(part)
    assembly.model = reply.model or ""
    assembly.usage = merge_usage([reply.usage] if reply.usage else [])
    set_finish(assembly, reply.stop_reason or "")
    return assembly.message()


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
        return incomplete_json(data)
    except RecursionError:
        return BadReply(f"JSON nested too deeply ({beginning})")
    return BadReply(f"JSON of another kind ({beginning}): {make_printable(str(error), 200)}")


def set_finish(assembly: ReplyAssembly, reason: str) -> None:
    """How the reply ended, with the provider's own word if it is unknown here."""
    finish = _FINISHES.get(reason, "other") if reason else ""
    if finish in ("stop", "calls"):
        finish = "calls" if assembly.has_calls else "stop"
    assembly.finish = finish
    assembly.unknown_finish = make_printable(reason, 100) if finish == "other" else ""


def merge_usage(reported: list[AnthropicUsage]) -> Usage | None:
    """A stream reports totals so far: the last value of each count is right."""
    counts = dict.fromkeys(("input", "created", "read", "output", "thoughts"), 0)
    for usage in reported:
        details = usage.output_tokens_details
        values = {
            "input": usage.input_tokens,
            "created": usage.cache_creation_input_tokens,
            "read": usage.cache_read_input_tokens,
            "output": usage.output_tokens,
            "thoughts": details.thinking_tokens if details is not None else None,
        }
        counts |= {name: clamp_count(n) for name, n in values.items() if n is not None}
    if not any(counts.values()):
        return None
    total = counts["input"] + counts["created"] + counts["read"]
    return Usage(
        input=total,
        output=counts["output"],
        cached=counts["read"],
        thoughts=counts["thoughts"],
        total=total + counts["output"],
    )


def has_content(part: Part) -> bool:
    if isinstance(part, Text):
        return part.text != ""
    return not isinstance(part, Thought) or part.text != "" or part.signature != ""
