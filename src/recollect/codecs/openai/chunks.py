"""One event of a streamed OpenAI reply, or a whole reply, as values.

`decode_chunk` decodes with types: a microsecond for what a correct server sends. Anything else is
salvaged field by field: a field with an unusable value is dropped, so wrong types never raise.
Bytes that are not a JSON object raise `UnreadableJson`, an error object the provider's error.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from recollect.codecs.foreign_json import (
    JSON_ERRORS,
    MAX_COUNT,
    UnreadableJson,
    clamp_count,
    is_too_deep,
    load_json,
)
from recollect.codecs.provider_errors import provider_error_from
from recollect.entries import Usage, json_text
from recollect.errors import ProviderFailed

_TokenCount = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]


class OpenAIUsageDetails(msgspec.Struct, gc=False):
    cached_tokens: _TokenCount | None = None
    reasoning_tokens: _TokenCount | None = None


class OpenAIUsage(msgspec.Struct, gc=False):
    prompt_tokens: _TokenCount | None = None
    completion_tokens: _TokenCount | None = None
    total_tokens: _TokenCount | None = None
    prompt_tokens_details: OpenAIUsageDetails | None = None
    completion_tokens_details: OpenAIUsageDetails | None = None
    prompt_cache_hit_tokens: _TokenCount | None = None  # DeepSeek's

    def usage(self) -> Usage:
        prompt, completion = self.prompt_tokens_details, self.completion_tokens_details
        return Usage(
            input=self.prompt_tokens or 0,
            output=self.completion_tokens or 0,
            cached=(prompt and prompt.cached_tokens) or self.prompt_cache_hit_tokens or 0,
            thoughts=(completion and completion.reasoning_tokens) or 0,
            total=self.total_tokens or 0,
        )


class FunctionDelta(msgspec.Struct, gc=False):
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
    error = chunk.error or {"message": chunk.message, "code": chunk.code}
    if not isinstance(error, dict):
        return provider_error_from(error if isinstance(error, str) else _json(error))
    said, code, kind = error.get("message"), error.get("code"), error.get("type")
    if not isinstance(said, str) or not said:
        said = _json(error)
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str):  # OpenRouter puts the provider's own words here
        said = f"{said}: {raw}"
    words = [word for word in (code, kind) if isinstance(word, str)]
    status = clamp_count(code)
    return provider_error_from(
        said, status if 100 <= status <= 599 else 0, words[0] if words else ""
    )


def _json(value: object) -> str:
    return "an error nested too deeply to be shown" if is_too_deep(value) else json_text(value)


def _salvage_chunk(value: object) -> ReplyChunk:
    if not isinstance(value, dict):
        raise UnreadableJson(f"a {type(value).__name__}, not an object")
    choices = value.get("choices")
    return ReplyChunk(
        choices=[_salvage_choice(c) for c in choices if isinstance(c, dict)]
        if isinstance(choices, list)
        else None,
        model=_string(value.get("model")),
        usage=_salvage_usage(value.get("usage")),
        error=value.get("error"),
        object=_string(value.get("object")),
        message=value.get("message"),
        code=value.get("code"),
    )


def _salvage_choice(value: dict[str, Any]) -> ChunkChoice:
    index = value.get("index")
    return ChunkChoice(
        delta=_salvage_delta(value.get("delta")),
        finish_reason=_string(value.get("finish_reason")),
        index=index if isinstance(index, int) else None,
        message=_salvage_delta(value.get("message")),
        usage=_salvage_usage(value.get("usage")),
    )


def _salvage_delta(value: object) -> MessageDelta | None:
    if not isinstance(value, dict):
        return None
    content, calls = value.get("content"), value.get("tool_calls")
    if isinstance(calls, dict):
        calls = [calls]
    return MessageDelta(
        content=content if isinstance(content, str | list) else None,
        tool_calls=[_salvage_call(c) for c in calls if isinstance(c, dict)]
        if isinstance(calls, list)
        else None,
        reasoning_content=_string(value.get("reasoning_content")),
        reasoning=_string(value.get("reasoning")),
        reasoning_details=_list(value.get("reasoning_details")),
        refusal=_string(value.get("refusal")),
        function_call=_salvage_function(value.get("function_call")),
        images=_list(value.get("images")),
    )


def _salvage_call(value: dict[str, Any]) -> CallDelta:
    index, id_ = value.get("index"), value.get("id")
    return CallDelta(
        index=index if isinstance(index, int) else None,
        id=str(id_) if isinstance(id_, int) else _string(id_),
        function=_salvage_function(value.get("function")),
    )


def _salvage_function(value: object) -> FunctionDelta | None:
    if not isinstance(value, dict):
        return None
    arguments = value.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json_text(arguments)  # an object, from servers that misread the format
    return FunctionDelta(name=_string(value.get("name")), arguments=arguments)


def _salvage_usage(value: object) -> OpenAIUsage | None:
    if not isinstance(value, dict):
        return None
    return OpenAIUsage(
        prompt_tokens=clamp_count(value.get("prompt_tokens")),
        completion_tokens=clamp_count(value.get("completion_tokens")),
        total_tokens=clamp_count(value.get("total_tokens")),
        prompt_tokens_details=_salvage_details(value.get("prompt_tokens_details")),
        completion_tokens_details=_salvage_details(value.get("completion_tokens_details")),
        prompt_cache_hit_tokens=clamp_count(value.get("prompt_cache_hit_tokens")),
    )


def _salvage_details(value: object) -> OpenAIUsageDetails | None:
    if not isinstance(value, dict):
        return None
    return OpenAIUsageDetails(
        cached_tokens=clamp_count(value.get("cached_tokens")),
        reasoning_tokens=clamp_count(value.get("reasoning_tokens")),
    )


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: object) -> list[Any] | None:
    return value if isinstance(value, list) else None
