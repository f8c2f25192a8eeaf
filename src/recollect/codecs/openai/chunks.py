"""One event of a streamed OpenAI reply, or a whole reply, as values.

`chunk_of` decodes with types: a microsecond for what a sound server sends. What does not fit takes
the careful road, which keeps every field that has a usable value and drops the others; so wrong
types never raise. What is no JSON object raises `BadJson`, an error object the provider's failure.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from recollect.codecs.failures import failure
from recollect.codecs.openai.values import DAMAGED, MAX_COUNT, BadJson, count_of, is_deep, loaded
from recollect.entries import Usage, json_text
from recollect.errors import ProviderFailed

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]


class Details(msgspec.Struct, gc=False):
    cached_tokens: _Count | None = None
    reasoning_tokens: _Count | None = None


class Counts(msgspec.Struct, gc=False):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    total_tokens: _Count | None = None
    prompt_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None
    prompt_cache_hit_tokens: _Count | None = None  # DeepSeek's

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


class FunctionPiece(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class CallPiece(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: FunctionPiece | None = None


class Piece(msgspec.Struct, gc=False):
    """What is new of a message; of a reply in one piece, all of it."""

    content: str | list[Any] | None = None
    tool_calls: list[CallPiece] | None = None
    reasoning_content: str | None = None  # DeepSeek, Qwen, GLM, llama.cpp
    reasoning: str | None = None  # OpenRouter, vLLM, Ollama
    reasoning_details: list[Any] | None = None  # OpenRouter: signatures among them
    refusal: str | None = None
    function_call: FunctionPiece | None = None
    images: list[Any] | None = None  # OpenRouter


class Choice(msgspec.Struct, gc=False):
    delta: Piece | None = None
    finish_reason: str | None = None
    index: int | None = None
    message: Piece | None = None
    usage: Counts | None = None  # Moonshot puts it here


class Chunk(msgspec.Struct, gc=False):
    choices: list[Choice] | None = None
    model: str | None = None
    usage: Counts | None = None
    error: Any = None
    object: str | None = None
    message: Any = None  # of an error, at vLLM: beside "object": "error"
    code: Any = None


_decode = msgspec.json.Decoder(Chunk).decode


def chunk_of(data: bytes) -> Chunk:
    try:
        chunk = _decode(data)
    except DAMAGED:
        chunk = _carefully(loaded(data))
    if chunk.error or chunk.object == "error":
        raise failure_in(chunk)
    return chunk


def failure_in(chunk: Chunk) -> ProviderFailed:
    """An error object, a bare sentence, or vLLM's flat form."""
    error = chunk.error or {"message": chunk.message, "code": chunk.code}
    if not isinstance(error, dict):
        return failure(error if isinstance(error, str) else _json(error))
    said, code, kind = error.get("message"), error.get("code"), error.get("type")
    if not isinstance(said, str) or not said:
        said = _json(error)
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if isinstance(raw, str):  # OpenRouter: its own words say nothing, the provider's stand here
        said = f"{said}: {raw}"
    words = [word for word in (code, kind) if isinstance(word, str)]
    status = count_of(code)
    return failure(said, status if 100 <= status <= 599 else 0, words[0] if words else "")


def _json(value: object) -> str:
    return "an error nested too deeply to be shown" if is_deep(value) else json_text(value)


# --- the careful road --------------------------------------------------------------------------


def _carefully(value: object) -> Chunk:
    if not isinstance(value, dict):
        raise BadJson(f"a {type(value).__name__}, not an object")
    choices = value.get("choices")
    return Chunk(
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


def _choice(value: dict[str, Any]) -> Choice:
    index = value.get("index")
    return Choice(
        delta=_piece(value.get("delta")),
        finish_reason=_text(value.get("finish_reason")),
        index=index if isinstance(index, int) else None,
        message=_piece(value.get("message")),
        usage=_counts(value.get("usage")),
    )


def _piece(value: object) -> Piece | None:
    if not isinstance(value, dict):
        return None
    content, calls = value.get("content"), value.get("tool_calls")
    if isinstance(calls, dict):
        calls = [calls]
    return Piece(
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


def _call(value: dict[str, Any]) -> CallPiece:
    index, id_ = value.get("index"), value.get("id")
    return CallPiece(
        index=index if isinstance(index, int) else None,
        id=str(id_) if isinstance(id_, int) else _text(id_),
        function=_function(value.get("function")),
    )


def _function(value: object) -> FunctionPiece | None:
    if not isinstance(value, dict):
        return None
    arguments = value.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json_text(arguments)  # an object, from servers that misread the format
    return FunctionPiece(name=_text(value.get("name")), arguments=arguments)


def _counts(value: object) -> Counts | None:
    if not isinstance(value, dict):
        return None
    asked, answered = value.get("prompt_tokens_details"), value.get("completion_tokens_details")
    return Counts(
        prompt_tokens=count_of(value.get("prompt_tokens")),
        completion_tokens=count_of(value.get("completion_tokens")),
        total_tokens=count_of(value.get("total_tokens")),
        prompt_tokens_details=_details(asked),
        completion_tokens_details=_details(answered),
        prompt_cache_hit_tokens=count_of(value.get("prompt_cache_hit_tokens")),
    )


def _details(value: object) -> Details | None:
    if not isinstance(value, dict):
        return None
    return Details(
        cached_tokens=count_of(value.get("cached_tokens")),
        reasoning_tokens=count_of(value.get("reasoning_tokens")),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: object) -> list[Any] | None:
    return value if isinstance(value, list) else None
