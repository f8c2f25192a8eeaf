"""A request in the OpenAI chat format, as a client sends it to a gateway.

Accepts everything the documentation allows and what clients make of it: content as text or parts,
missing ids, functions from before there were tools. Unknown fields are skipped, unknown parts are
kept as JSON. Anything else raises a `BadInput` that says where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.call_arguments import unwrap_arguments
from recollect.codecs.foreign_json import (
    JSON_ERRORS,
    NO_JSON,
    UnreadableJson,
    encode,
    is_too_deep,
    join_and_replace_surrogates,
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
from recollect.entries import Content, Message, Part, Text, Thought, ToolCall, ToolResult
from recollect.errors import BadInput
from recollect.json_depth import MAX_DEPTH

_EFFORTS: dict[str, Effort] = {
    "none": "none",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
JSON_MODE = '{"type":"object"}'  # the schema that `json_object` stands for


class _OpenAIFunction(msgspec.Struct):
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = NO_JSON
    arguments: msgspec.Raw = NO_JSON


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
    schema: msgspec.Raw = NO_JSON


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
    request = _decode_body(body)
    options = RequestOptions(
        model=request.model,
        tools=tuple(_tools(request)),
        tool_choice=_choice(request),
        generation=_generation(request),
        stream=bool(request.stream),
    )
    return DecodedRequest(options, tuple(_decode_messages(request.messages, request.model)))


def _decode_body(body: bytes) -> _OpenAIRequest:
    try:
        return _decoder.decode(body)
    except JSON_ERRORS:
        pass  # perhaps text that only msgspec refuses: once more, carefully
    try:
        clean, _ = join_and_replace_surrogates(load_json(body))
        return _decoder.decode(encode(clean))
    except UnreadableJson as error:
        raise BadInput(f"the request is not readable JSON: {error}") from None
    except JSON_ERRORS as error:
        why = make_printable(str(error), 200)
        raise BadInput(f"the request is not a chat completion: {why}") from None


def _json_text(raw: msgspec.Raw, what: str, default: str = "") -> str:
    """JSON as it stood in the request, if its depth is bounded."""
    data = bytes(raw)
    if not data or data == b"null":
        return default
    try:
        deep = is_too_deep(msgspec.json.decode(data))
    except JSON_ERRORS as error:
        raise BadInput(
            f"{what}: not readable as JSON ({make_printable(str(error), 200)})"
        ) from None
    if deep:
        raise BadInput(f"{what}: nested deeper than {MAX_DEPTH} levels; flatten it")
    return data.decode()


def _tools(request: _OpenAIRequest) -> list[Declaration]:
    functions = [tool.function for tool in request.tools or () if tool.type == "function"]
    return [
        Declaration(
            name=function.name,
            description=function.description or "",
            parameters=_json_text(function.parameters, "a tool's parameters", NO_PARAMETERS),
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


def _schema(format_: _OpenAIResponseFormat | None) -> str:
    if format_ is None:
        return ""
    if format_.type == "json_schema" and format_.json_schema is not None:
        return _json_text(format_.json_schema.schema, "the reply's schema")
    return JSON_MODE if format_.type == "json_object" else ""


def _decode_messages(items: Sequence[_OpenAIRequestMessage], model: str) -> list[Message]:
    """Neighbouring results are one message, as they are in a session."""
    found: list[Message] = []
    names: dict[str, str] = {}  # of the tools that were called, by the call's id
    results: list[Part] = []
    for position, item in enumerate(items):
        if item.role in ("tool", "function"):
            id_ = item.tool_call_id or ""
            name = names.get(id_) or item.name or ""
            content = _decode_content(item, position)
            results.append(ToolResult(call_id=id_, name=name, content=content))
            continue
        if results:
            found.append(Message(role="user", parts=tuple(results)))
            results = []
        message = _decode_message(item, position, model)
        names |= {part.id: part.name for part in message.parts if isinstance(part, ToolCall)}
        found.append(message)
    if results:
        found.append(Message(role="user", parts=tuple(results)))
    return found


def _decode_message(item: _OpenAIRequestMessage, position: int, model: str) -> Message:
    content = _decode_content(item, position)
    if item.role in ("system", "developer"):
        return Message(role="system", parts=content)
    if item.role == "user":
        return Message(role="user", parts=content)
    if item.role != "assistant":
        role = make_printable(item.role, 40)
        raise BadInput(
            f"message {position} has the role {role!r}; "
            "system, developer, user, assistant and tool are known"
        )
    thought = item.reasoning_content or item.reasoning
    parts: list[Part] = [Thought(text=thought)] if thought else []
    parts += content
    if item.refusal:
        parts.append(Text(text=item.refusal))
    parts += [_decode_call(call) for call in item.tool_calls or ()]
    if item.function_call is not None:
        parts.append(_decode_call(_OpenAICall(function=item.function_call)))
    # A client that sends a thought back claims it is the model's own: only then may it go there.
    return Message(role="model", parts=tuple(parts), model=model if thought else "")


def _decode_content(item: _OpenAIRequestMessage, position: int) -> tuple[Content, ...]:
    if isinstance(item.content, str):
        return (Text(text=item.content),) if item.content else ()
    found = []
    for part in item.content or ():
        if is_too_deep(part):
            raise BadInput(
                f"a part of message {position} is nested deeper than {MAX_DEPTH} levels; flatten it"
            )
        found.append(decode_part(part))
    return tuple(found)


def _decode_call(call: _OpenAICall) -> ToolCall:
    function = call.function or _OpenAIFunction()
    arguments = _json_text(function.arguments, "a call's arguments")
    if arguments.startswith('"'):  # as documented: JSON inside a string
        arguments = msgspec.json.decode(arguments, type=str)
    arguments = unwrap_arguments(arguments) or "{}"
    return ToolCall(id=call.id or "", name=function.name or "", arguments=arguments)
