"""One event of a streamed OpenAI reply, or a whole reply, as values.

`decode_chunk` decodes with types: a microsecond for what a correct server sends. Anything else is
salvaged field by field: a field with an unusable value is dropped, so wrong types do not raise,
except where a piece of a call might be lost with them: arguments without their middle may still be
JSON. Those, and bytes that are not a JSON object, raise `UnreadableJson`, an error object the
provider's error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from recollect.codecs.foreign_json import (
    JSON_ERRORS,
    UnreadableJson,
    load_json,
    read_count,
)
from recollect.codecs.provider_errors import provider_error_in
from recollect.entries import Usage, json_text
from recollect.errors import ProviderFailed
from recollect.tokens import MAX_REPORT, believe_usage

_S = TypeVar("_S", bound=msgspec.Struct)
_TokenCount = Annotated[int, msgspec.Meta(ge=0, le=MAX_REPORT)]


class OpenAIUsageDetails(msgspec.Struct, gc=False):
    cached_tokens: _TokenCount | None = None
    cache_write_tokens: _TokenCount | None = None  # OpenRouter's
    reasoning_tokens: _TokenCount | None = None


class OpenAIUsage(msgspec.Struct, gc=False):
    prompt_tokens: _TokenCount | None = None
    completion_tokens: _TokenCount | None = None
    total_tokens: _TokenCount | None = None
    prompt_tokens_details: OpenAIUsageDetails | None = None
    completion_tokens_details: OpenAIUsageDetails | None = None
    prompt_cache_hit_tokens: _TokenCount | None = None  # DeepSeek's

    def usage(self) -> Usage | None:
        prompt, completion = self.prompt_tokens_details, self.completion_tokens_details
        told = [prompt.cached_tokens if prompt is not None else None, self.prompt_cache_hit_tokens]
        cached = max((count for count in told if count is not None), default=None)
        return believe_usage(
            Usage(
                input=self.prompt_tokens or 0,
                output=self.completion_tokens or 0,
                cached=cached,
                written=(prompt and prompt.cache_write_tokens) or 0,
                thoughts=(completion and completion.reasoning_tokens) or 0,
                total=self.total_tokens or 0,
            )
        )


class FunctionDelta(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    name: str | None = None
    arguments: str | None = None


class CallDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None


class MessageDelta(msgspec.Struct, gc=False):
    """The new part of a message; of a reply in one piece, all of it."""

    content: str | list[Any] | None = None
    tool_calls: list[CallDelta] | None = None
    reasoning_content: str | None = None  # DeepSeek, Qwen, GLM, llama.cpp
    reasoning: str | None = None  # OpenRouter, vLLM, Ollama
    reasoning_details: list[Any] | None = None  # OpenRouter: signatures among them
    refusal: str | None = None
    function_call: FunctionDelta | None = None
    images: list[Any] | None = None  # OpenRouter


class ChunkChoice(msgspec.Struct, gc=False):
    delta: MessageDelta | None = None
    finish_reason: str | None = None
    index: int | None = None
    message: MessageDelta | None = None
    usage: OpenAIUsage | None = None  # Moonshot puts it here


class ReplyChunk(msgspec.Struct, gc=False):
    choices: list[ChunkChoice] | None = None
    model: str | None = None
    usage: OpenAIUsage | None = None
    error: Any = None
    object: str | None = None
    message: Any = None  # of an error, at vLLM: beside "object": "error"
    code: Any = None


_decode = msgspec.json.Decoder(ReplyChunk).decode


def decode_chunk(data: bytes) -> ReplyChunk:
    try:
        chunk = _decode(data)
    except JSON_ERRORS:
        chunk = _salvage_chunk(load_json(data))
    if chunk.error or chunk.object == "error":
        raise error_in_chunk(chunk)
    return chunk


def error_in_chunk(chunk: ReplyChunk) -> ProviderFailed:
    """An error object, a bare sentence, or vLLM's flat form."""
    return provider_error_in(chunk.error or {"message": chunk.message, "code": chunk.code})


def _salvage_chunk(value: object) -> ReplyChunk:
    chunk = _salvage(value, ReplyChunk)
    if chunk is None or not isinstance(value, dict):
        raise UnreadableJson(f"a {type(value).__name__}, not an object")
    chunk.message = value.get("message")  # of an error; elsewhere the name means a message
    return chunk


def _salvage(value: object, kind: type[_S]) -> _S | None:
    """The struct with every usable field; None if the value is not an object."""
    if not isinstance(value, dict):
        return None
    return kind(**{name: _CLEANERS[name](value.get(name)) for name in kind.__struct_fields__})


def _salvage_or_refuse(value: object, kind: type[_S]) -> _S | None:
    found = _salvage(value, kind)
    if found is None and value is not None:
        raise UnreadableJson(f"a {type(value).__name__} where a piece of a call may be")
    return found


def _salvage_function(value: object) -> FunctionDelta | None:
    """Refused if something stands where the arguments should be: their name may be damaged."""
    found = _salvage_or_refuse(value, FunctionDelta)
    if isinstance(value, dict) and "arguments" not in value:
        others = (key for key in value if key not in FunctionDelta.__struct_fields__)
        if any(value[key] is not None for key in others):
            raise UnreadableJson("a call with something else instead of its arguments")
    return found


def _salvage_all(values: object, kind: type[_S]) -> list[_S] | None:
    if values is None:
        return None
    items = values if isinstance(values, list) else [values]
    return [found for item in items if (found := _salvage_or_refuse(item, kind)) is not None]


def _only(*kinds: type) -> Callable[[object], Any]:
    return lambda value: value if isinstance(value, kinds) else None


def _clean_arguments(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, dict):
        raise UnreadableJson(f"a {type(value).__name__} as the arguments of a call")
    return json_text(value)  # from servers that misread the format


def _clean_count(value: object) -> int | None:
    return None if value is None else read_count(value)


def _clean_index(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise UnreadableJson(f"a {type(value).__name__} as the index of a call or choice")
    return value


_CLEANERS: dict[str, Callable[[object], Any]] = {
    **dict.fromkeys(("model", "object", "finish_reason", "name"), _only(str)),
    **dict.fromkeys(("reasoning_content", "reasoning", "refusal"), _only(str)),
    **dict.fromkeys(("reasoning_details", "images"), _only(list)),
    **dict.fromkeys(("error", "code"), lambda value: value),
    **dict.fromkeys(("delta", "message"), lambda value: _salvage_or_refuse(value, MessageDelta)),
    **dict.fromkeys(("function", "function_call"), _salvage_function),
    **dict.fromkeys(OpenAIUsage.__struct_fields__, _clean_count),
    **dict.fromkeys(OpenAIUsageDetails.__struct_fields__, _clean_count),
    **dict.fromkeys(
        ("prompt_tokens_details", "completion_tokens_details"),
        lambda value: _salvage(value, OpenAIUsageDetails),
    ),
    "choices": lambda value: _salvage_all(value, ChunkChoice),
    "usage": lambda value: _salvage(value, OpenAIUsage),
    "index": _clean_index,
    "id": lambda value: str(value) if isinstance(value, int) else _only(str)(value),
    "content": _only(str, list),
    "tool_calls": lambda value: _salvage_all(value, CallDelta),
    "arguments": _clean_arguments,
}
