"""Reads a request in the OpenAI chat format: what a gateway is asked.

Takes everything the documentation allows and what clients make of it: content as text or parts,
missing ids, functions from before there were tools. Fields nobody knows here are passed over, parts
nobody knows are kept as JSON. What is wrong is a `BadInput` that says where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.foreign_json import (
    JSON_ERRORS,
    UnreadableJson,
    join_and_replace_surrogates,
    is_too_deep,
    load_json,
)
from recollect.codecs.openai.decode_parts import decode_part
from recollect.codecs.provider_errors import make_printable
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    DecodedRequest,
    Effort,
    Generation,
    RequestOptions,
)
from recollect.entries import MAX_DEPTH, Content, Message, Part, Text, Thought, ToolCall, ToolResult
from recollect.errors import BadInput

_NONE = msgspec.Raw(b"")
_EFFORTS: dict[str, Effort] = {
    "none": "none",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
JSON_MODE = '{"type":"object"}'  # what `parse_object` asks for, as a schema


class _OpenAIFunction(msgspec.Struct):
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = _NONE
    arguments: msgspec.Raw = _NONE


class _OpenAITool(msgspec.Struct):
    type: str = "function"
    function: _OpenAIFunction | None = None


class _OpenAICall(msgspec.Struct):
    id: str | None = None
    function: _OpenAIFunction | None = None


class _OpenAIRequestMessage(msgspec.Struct):
    role: str
    content: str | list[Any] | None = None
    tool_calls: list[_OpenAICall] | None = None
    function_call: _OpenAIFunction | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None


class _OpenAISchema(msgspec.Struct):
    schema: msgspec.Raw = _NONE


class _OpenAIResponseFormat(msgspec.Struct):
    type: str = ""
    json_schema: _OpenAISchema | None = None


class _OpenAIRequest(msgspec.Struct):
    messages: list[_OpenAIRequestMessage]
    model: str = ""
    tools: list[_OpenAITool] | None = None
    functions: list[_OpenAIFunction] | None = None
    tool_choice: Any = None
    function_call: Any = None
    temperature: float | None = None
    top_p: float | None = None
    max_completion_tokens: int | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    enable_thinking: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    response_format: _OpenAIResponseFormat | None = None
    stream: bool | None = None


_decoder = msgspec.json.Decoder(_OpenAIRequest)


def decode_request(body: bytes) -> DecodedRequest:
    request = _decoded(body)
    options = RequestOptions(
        model=request.model,
        tools=tuple(_tools(request)),
        tool_choice=_choice(request),
        generation=_generation(request),
        stream=bool(request.stream),
    )
    return DecodedRequest(options, tuple(_messages(request.messages, request.model)))


def _decoded(body: bytes) -> _OpenAIRequest:
    try:
        return _decoder.decode(body)
    except JSON_ERRORS:
        pass  # perhaps only for text that msgspec does not read: once more, carefully
    try:
        clean, _ = join_and_replace_surrogates(load_json(body))
        return _decoder.decode(msgspec.json.encode(clean))
    except UnreadableJson as error:
        raise BadInput(f"the request is no JSON that can be read: {error}") from None
    except JSON_ERRORS as error:
        why = make_printable(str(error), 200)
        raise BadInput(f"the request is no chat completion: {why}") from None


def _text_of(raw: msgspec.Raw, what: str, default: str = "") -> str:
    """JSON as it stood in the request, if its depth is bounded."""
    data = bytes(raw)
    if not data or data == b"null":
        return default
    try:
        deep = is_too_deep(msgspec.json.decode(data))
    except JSON_ERRORS as error:
        raise BadInput(
            f"{what}: not to be read as JSON ({make_printable(str(error), 200)})"
        ) from None
    if deep:
        raise BadInput(f"{what}: nested deeper than {MAX_DEPTH} levels; flatten it")
    return data.decode()


# --- the options --------------------------------------------------------------------------------


def _tools(request: _OpenAIRequest) -> list[Declaration]:
    functions = [tool.function for tool in request.tools or () if tool.type == "function"]
    return [
        Declaration(
            name=function.name,
            description=function.description or "",
            parameters=_text_of(function.parameters, "a tool's parameters", NO_PARAMETERS),
        )
        for function in (*functions, *(request.functions or ()))
        if function is not None and function.name
    ]


def _choice(request: _OpenAIRequest) -> str:
    match request.tool_choice or request.function_call:
        case "none" | "required" as word:
            return str(word)
        case "any":  # Mistral's word for it
            return "required"
        case {"function": {"name": str(name)}} | {"name": str(name)}:
            return name
    return "auto"


def _generation(request: _OpenAIRequest) -> Generation:
    stop = request.stop or ()
    limit = request.max_completion_tokens
    return Generation(
        temperature=request.temperature,
        top_p=request.top_p,
        max_output=request.max_tokens if limit is None else limit,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=request.seed,
        effort=_effort(request),
        schema=_schema(request.response_format),
    )


def _effort(request: _OpenAIRequest) -> Effort:
    template = request.chat_template_kwargs or {}
    if request.enable_thinking is False or template.get("enable_thinking") is False:
        return "none"
    return _EFFORTS.get(request.reasoning_effort or "", "")


def _schema(form: _OpenAIResponseFormat | None) -> str:
    if form is None:
        return ""
    if form.type == "json_schema" and form.json_schema is not None:
        return _text_of(form.json_schema.schema, "the answer's schema")
    return JSON_MODE if form.type == "json_object" else ""


# --- the messages ------------------------------------------------------------------------------


def _messages(spoken: Sequence[_OpenAIRequestMessage], model: str) -> list[Message]:
    """Neighbouring results are one message, as they are in a session."""
    found: list[Message] = []
    names: dict[str, str] = {}  # of the tools that were called, by the call's id
    results: list[Part] = []
    for place, one in enumerate(spoken):
        if one.role in ("tool", "function"):
            id_ = one.tool_call_id or ""
            name = names.get(id_) or one.name or ""
            content = _content(one, place)
            results.append(ToolResult(call_id=id_, name=name, content=content))
            continue
        if results:
            found.append(Message(role="user", parts=tuple(results)))
            results = []
        message = _message(one, place, model)
        names |= {part.id: part.name for part in message.parts if isinstance(part, ToolCall)}
        found.append(message)
    if results:
        found.append(Message(role="user", parts=tuple(results)))
    return found


def _message(one: _OpenAIRequestMessage, place: int, model: str) -> Message:
    content = _content(one, place)
    if one.role in ("system", "developer"):
        return Message(role="system", parts=content)
    if one.role == "user":
        return Message(role="user", parts=content)
    if one.role != "assistant":
        role = make_printable(one.role, 40)
        raise BadInput(
            f"message {place} has the role {role!r}; "
            "system, developer, user, assistant and tool are known"
        )
    thought = one.reasoning_content or one.reasoning
    parts: list[Part] = [Thought(text=thought)] if thought else []
    parts += content
    if one.refusal:
        parts.append(Text(text=one.refusal))
    parts += [_call(call) for call in one.tool_calls or ()]
    if one.function_call is not None:
        parts.append(_call(_OpenAICall(function=one.function_call)))
    # Who sends a thought back claims that it is the model's own: only so it may go there again.
    return Message(role="model", parts=tuple(parts), model=model if thought else "")


def _content(one: _OpenAIRequestMessage, place: int) -> tuple[Content, ...]:
    if isinstance(one.content, str):
        return (Text(text=one.content),) if one.content else ()
    found = []
    for part in one.content or ():
        if is_too_deep(part):
            raise BadInput(
                f"a part of message {place} is nested deeper than {MAX_DEPTH} levels; flatten it"
            )
        found.append(decode_part(part))
    return tuple(found)


def _call(call: _OpenAICall) -> ToolCall:
    function = call.function or _OpenAIFunction()
    arguments = _text_of(function.arguments, "a call's arguments")
    if arguments.startswith('"'):  # as documented: JSON inside a string
        arguments = msgspec.json.decode(arguments, type=str)
    return ToolCall(id=call.id or "", name=function.name or "", arguments=arguments or "{}")
