"""One event of a streamed OpenAI reply, or a whole reply, as values.

`decode_chunk` decodes with types: a microsecond for what a sound server sends. What does not fit takes
the careful road, which keeps every field that has a usable value and drops the others; so wrong
types never raise. What is no JSON object raises `UnreadableJson`, an error object the provider's failure.
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
        asked = self.prompt_tokens_details
        answered = self.completion_tokens_details
        return Usage(
            input=self.prompt_tokens or 0,
            output=self.completion_tokens or 0,
            cached=(asked and asked.cached_tokens) or self.prompt_cache_hit_tokens or 0,
            thoughts=(answered and answered.reasoning_tokens) or 0,
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
    """What is new of a message; of a reply in one piece, all of it."""

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
    if isinstance(raw, str):  # OpenRouter: its own words say nothing, the provider's stand here
        said = f"{said}: {raw}"
    words = [word for word in (code, kind) if isinstance(word, str)]
    status = clamp_count(code)
    return provider_error_from(
        said, status if 100 <= status <= 599 else 0, words[0] if words else ""
    )


def _json(value: object) -> str:
    return "an error nested too deeply to be shown" if is_too_deep(value) else json_text(value)


# --- the careful road --------------------------------------------------------------------------


def _salvage_chunk(value: object) -> ReplyChunk:
    if not isinstance(value, dict):
        raise UnreadableJson(f"a {type(value).__name__}, not an object")
    choices = value.get("choices")
    return ReplyChunk(
        choices=[_choice(c) for c in choices if isinstance(c, dict)]
        if isinstance(choices, list)
        else None,
        model=_text(value.get("model")),
        usage=_counts(value.get("usage")),
        error=value.get("error"),
        object=_text(value.get("object")),
        message=value.get("message"),
        code=value.get("code"),
    )


def _choice(value: dict[str, Any]) -> ChunkChoice:
    index = value.get("index")
    return ChunkChoice(
        delta=_piece(value.get("delta")),
        finish_reason=_text(value.get("finish_reason")),
        index=index if isinstance(index, int) else None,
        message=_piece(value.get("message")),
        usage=_counts(value.get("usage")),
    )


def _piece(value: object) -> MessageDelta | None:
    if not isinstance(value, dict):
        return None
    content, calls = value.get("content"), value.get("tool_calls")
    if isinstance(calls, dict):
        calls = [calls]
    return MessageDelta(
        content=content if isinstance(content, str | list) else None,
        tool_calls=[_call(c) for c in calls if isinstance(c, dict)]
        if isinstance(calls, list)
        else None,
        reasoning_content=_text(value.get("reasoning_content")),
        reasoning=_text(value.get("reasoning")),
        reasoning_details=_list(value.get("reasoning_details")),
        refusal=_text(value.get("refusal")),
        function_call=_function(value.get("function_call")),
        images=_list(value.get("images")),
    )


def _call(value: dict[str, Any]) -> CallDelta:
    index, id_ = value.get("index"), value.get("id")
    return CallDelta(
        index=index if isinstance(index, int) else None,
        id=str(id_) if isinstance(id_, int) else _text(id_),
        function=_function(value.get("function")),
    )


def _function(value: object) -> FunctionDelta | None:
    if not isinstance(value, dict):
        return None
    arguments = value.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json_text(arguments)  # an object, from servers that misread the format
    return FunctionDelta(name=_text(value.get("name")), arguments=arguments)


def _counts(value: object) -> OpenAIUsage | None:
    if not isinstance(value, dict):
        return None
    asked, answered = value.get("prompt_tokens_details"), value.get("completion_tokens_details")
    return OpenAIUsage(
        prompt_tokens=clamp_count(value.get("prompt_tokens")),
        completion_tokens=clamp_count(value.get("completion_tokens")),
        total_tokens=clamp_count(value.get("total_tokens")),
        prompt_tokens_details=_details(asked),
        completion_tokens_details=_details(answered),
        prompt_cache_hit_tokens=clamp_count(value.get("prompt_cache_hit_tokens")),
    )


def _details(value: object) -> OpenAIUsageDetails | None:
    if not isinstance(value, dict):
        return None
    return OpenAIUsageDetails(
        cached_tokens=clamp_count(value.get("cached_tokens")),
        reasoning_tokens=clamp_count(value.get("reasoning_tokens")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: object) -> list[Any] | None:
    return value if isinstance(value, list) else None
