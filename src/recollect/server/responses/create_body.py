"""The body of `POST /v1/responses`, checked: every field has a meaning here, or is refused.

Hints without an effect on the answer (`user`, `service_tier`, `prompt_cache_key` …) are accepted.
A parameter that would change the answer and cannot be honoured is an error that names it.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from recollect.codecs.wire_protocol import Declaration, Effort, Generation
from recollect.entries import json_text
from recollect.server.responses.api_error import ApiError, invalid

T = TypeVar("T")
MAX_TOOLS, MAX_NAME, MAX_METADATA = 512, 128, 16
EFFORTS: dict[str, Effort] = {
    "none": "none",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
    "max": "high",
}
# accepted, echoed where the response has the field, and without an effect
HINTS = frozenset(
    {"user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"}
    | {"prompt_cache_options", "stream_options", "client_metadata"}
)
# known to the API and not done here: refused unless they ask for nothing
_NEUTRAL: dict[str, tuple[object, ...]] = {
    "prompt": (None,),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "top_logprobs": (None, 0),
    "max_tool_calls": (None,),
    "moderation": (None,),
    "context_management": (None, []),
    "image": (None,),
    "access_programs": (None,),
}


class _ConversationName(msgspec.Struct, frozen=True):
    id: str


class ReasoningOptions(msgspec.Struct, frozen=True):
    """How long to think; the kind of summary is the provider's own."""

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class AnswerFormat(msgspec.Struct, frozen=True):
    type: Literal["text", "json_object", "json_schema"] = "text"
    name: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class TextOptions(msgspec.Struct, frozen=True):
    format: AnswerFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class CreateBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks for."""

    model: str | None = None
    input: str | list[Any] | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | _ConversationName | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    metadata: dict[str, str] | None = None
    include: list[str] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    store: bool | None = None
    stream: bool | None = None
    background: bool | None = None
    user: str | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    # ours: the client watches for `recollect:approval_requested`, and answers over our own face
    can_approve: bool = msgspec.field(default=False, name="recollect:can_approve")

    @property
    def is_stored(self) -> bool:
        return self.store is not False

    @property
    def conversation_id(self) -> str | None:
        given = self.conversation
        return given.id if isinstance(given, _ConversationName) else given


def read_create_body(value: Any) -> CreateBody:
    """The body of a request; raises `ApiError` with the parameter that is wrong."""
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object", code="invalid_type")
    known = set(CreateBody.__struct_encode_fields__) | HINTS
    for name in value:
        if name in _NEUTRAL and value[name] not in _NEUTRAL[name]:
            message = f"the parameter {name!r} is not supported here; leave it out"
            raise invalid(message, name, "unsupported_parameter")
        if name not in known and name not in _NEUTRAL:
            raise invalid(f"unknown parameter: {name[:80]!r}", name[:80], "unknown_parameter")
    body = convert_body(value, CreateBody)
    _check(body)
    return body


def convert_body(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at ")
        param = path.strip("`").removeprefix("$").removeprefix(".") or None
        where = f" for {param!r}" if param else ""
        raise invalid(f"invalid type{where}: {what}", param, "invalid_type") from None


def _check(body: CreateBody) -> None:
    if body.conversation is not None and body.previous_response_id is not None:
        both = "'conversation' and 'previous_response_id' exclude each other; send one"
        raise invalid(both, "conversation", "mutually_exclusive_parameters")
    if body.conversation is not None and not body.is_stored:
        raise invalid("a conversation is always stored; leave out 'store'", "store")
    if body.background:
        message = "'background' is not supported here; use 'stream', or leave it out"
        raise invalid(message, "background", "unsupported_parameter")
    for name, number, most in (("temperature", body.temperature, 2), ("top_p", body.top_p, 1)):
        if number is not None and not 0 <= number <= most:
            raise invalid(f"{name} is {number}; give a number from 0 to {most}", name)
    if body.max_output_tokens is not None and not 1 <= body.max_output_tokens <= 10_000_000:
        raise invalid("give 1 or more tokens", "max_output_tokens", "integer_below_min_value")
    effort = body.reasoning.effort if body.reasoning is not None else None
    if effort is not None and effort not in EFFORTS:
        raise invalid(f"the effort is one of {', '.join(EFFORTS)}", "reasoning.effort")
    check_metadata(body.metadata)


def check_metadata(metadata: dict[str, str] | None) -> None:
    if metadata is None:
        return
    if len(metadata) > MAX_METADATA:
        raise invalid(f"at most {MAX_METADATA} pairs fit", "metadata")
    if any(len(key) > 64 or len(value) > 512 for key, value in metadata.items()):
        raise invalid("keys have at most 64 characters, values 512", "metadata")


# --- tools ---------------------------------------------------------------------------------------


def declared_tools(body: CreateBody) -> tuple[Declaration, ...]:
    """The client's tools that the model may call."""
    given = body.tools or []
    if len(given) > MAX_TOOLS:
        raise invalid(f"{len(given)} tools; at most {MAX_TOOLS} fit", "tools")
    found = [_declare(tool, position) for position, tool in enumerate(given)]
    if len({tool.name for tool in found}) < len(found):
        raise invalid("two tools have the same name; rename one", "tools")
    allowed = _allowed_names(body.tool_choice)
    if allowed is None:
        return tuple(found)
    if unknown := allowed - {tool.name for tool in found}:
        raise invalid(f"tool {min(unknown)[:80]!r} is not among the tools", "tool_choice")
    return tuple(tool for tool in found if tool.name in allowed)


def _declare(tool: dict[str, Any], position: int) -> Declaration:
    where, type_ = f"tools[{position}]", tool.get("type")
    if type_ != "function":
        message = f"tools of type {str(type_)[:80]!r} are not hosted here; only 'function' is"
        raise invalid(message, f"{where}.type", "unsupported_tool")
    name, description = tool.get("name"), tool.get("description")
    parameters = tool.get("parameters")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
        raise invalid(f"a tool has a name of 1 to {MAX_NAME} characters", f"{where}.name")
    if not isinstance(description, str | None) or not isinstance(parameters, dict | None):
        raise invalid("a description is a text, parameters are a JSON Schema", where)
    schema = {"parameters": json_text(parameters)} if parameters else {}
    return Declaration(name=name, description=description or "", **schema)


def _allowed_names(choice: str | dict[str, Any] | None) -> set[str] | None:
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return None
    tools = choice.get("tools")
    named = [each.get("name") for each in tools if isinstance(each, dict)] if tools else []
    return {name for name in named if isinstance(name, str)}


def read_tool_choice(body: CreateBody, tools: tuple[Declaration, ...]) -> str:
    """`auto`, `none`, `required`, or the name of the one tool to call."""
    choice = body.tool_choice
    match choice:
        case None:
            return "auto"
        case "auto" | "none" | "required":
            return choice
        case {"type": "allowed_tools", "mode": "required"}:
            return "required"
        case {"type": "allowed_tools"}:
            return "auto"
        case {"type": "function", "name": str(name)} if name in {tool.name for tool in tools}:
            return name
    raise invalid("it is 'auto', 'none', 'required', or names one of the tools", "tool_choice")


def read_generation(body: CreateBody) -> Generation:
    effort = body.reasoning.effort if body.reasoning is not None else None
    return Generation(
        temperature=body.temperature,
        top_p=body.top_p,
        max_output=body.max_output_tokens,
        effort=EFFORTS[effort] if effort is not None else "",
        schema=_read_schema(body.text),
        parallel_calls=body.parallel_tool_calls,
    )


def _read_schema(text: TextOptions | None) -> str:
    form = text.format if text is not None else None
    if form is None or form.type == "text":
        return ""
    if form.type == "json_object":
        return '{"type":"object"}'
    if form.schema is None:
        raise invalid("a format of type 'json_schema' has a schema", "text.format.schema")
    return json_text(form.schema)


def missing(param: str) -> ApiError:
    return invalid(f"missing required parameter: {param!r}", param, "missing_required_parameter")
