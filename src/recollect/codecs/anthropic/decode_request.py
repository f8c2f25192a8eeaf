"""A request in Anthropic's format, as a client sends it to a gateway.

Guarantees: everything that the API's documentation allows is understood or kept as `Unknown`;
unknown fields are ignored, and so are tools that only Anthropic can run. Anything else raises a
`BadInput` that says what is wrong. A result gets its tool's name from the call it answers. A
message with thoughts in it counts as the requested model's own: no other model may get them back.
"""

from __future__ import annotations

import msgspec

from recollect.codecs.anthropic.decode_parts import (
    ContentBlock,
    decode_block,
    decode_json,
    decode_part,
    object_text,
    raw_text,
)
from recollect.codecs.anthropic.encode_options import BUDGETS
from recollect.codecs.fixes import quote_text
from recollect.codecs.foreign_json import NO_JSON
from recollect.codecs.reply_assembly import CallIds
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    DecodedRequest,
    Effort,
    Generation,
    RequestOptions,
)
from recollect.entries import (
    Content,
    FileRef,
    InlineData,
    Message,
    Part,
    Role,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Unknown,
)
from recollect.errors import BadInput

_ROLES: dict[str, Role] = {"user": "user", "assistant": "model", "system": "system"}


class _AnthropicRequestMessage(msgspec.Struct, gc=False):
    role: str
    content: str | list[msgspec.Raw]


class _AnthropicTool(msgspec.Struct, gc=False):
    name: str
    type: str | None = None
    description: str | None = None
    input_schema: msgspec.Raw = NO_JSON


class _AnthropicToolChoice(msgspec.Struct, gc=False):
    type: str
    name: str = ""


class _AnthropicThinkingConfig(msgspec.Struct, gc=False):
    type: str
    budget_tokens: int = 0


class _AnthropicOutputFormat(msgspec.Struct, gc=False):
    schema: msgspec.Raw = NO_JSON


class _AnthropicOutputConfig(msgspec.Struct, gc=False):
    effort: str | None = None
    format: _AnthropicOutputFormat | None = None


class _AnthropicRequest(msgspec.Struct, gc=False):
    model: str
    messages: list[_AnthropicRequestMessage]
    max_tokens: int | None = None
    system: str | list[msgspec.Raw] | None = None
    tools: list[_AnthropicTool] | None = None
    tool_choice: _AnthropicToolChoice | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: list[str] | None = None
    thinking: _AnthropicThinkingConfig | None = None
    output_config: _AnthropicOutputConfig | None = None
    stream: bool | None = None


_decoder = msgspec.json.Decoder(_AnthropicRequest)
_list_decoder = msgspec.json.Decoder(str | list[msgspec.Raw] | None)


def decode_request(body: bytes) -> DecodedRequest:
    try:
        request = decode_json(body, _decoder)
        instructions = _instructions(request.system)
        names: dict[str, str] = {}
        messages = tuple(
            _decode_message(number, item, request.model, names)
            for number, item in enumerate(request.messages)
        )
        return DecodedRequest(_decode_options(request), (*instructions, *messages))
    except BadInput as error:
        raise BadInput(f"not a request in Anthropic's format: {error}") from error


def _instructions(system: str | list[msgspec.Raw] | None) -> tuple[Message, ...]:
    parts = _decode_parts(system or [], {})
    return (Message(role="system", parts=parts),) if parts else ()


def _decode_message(
    number: int, item: _AnthropicRequestMessage, model: str, names: dict[str, str]
) -> Message:
    role = _ROLES.get(item.role)
    if role is None:
        raise BadInput(
            f"message {number} is of role {quote_text(item.role)}, not user or assistant"
        )
    try:
        parts = _decode_parts(item.content, names)
    except BadInput as error:
        raise BadInput(f"in message {number}, {error}") from error
    thinks = role == "model" and any(isinstance(part, Thought) for part in parts)
    return Message(role=role, parts=parts, model=model if thinks else "")


def _decode_parts(content: str | list[msgspec.Raw], names: dict[str, str]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (Text(text=content),) if content else ()
    found: list[Part] = []
    ids = CallIds()  # of this message: repair deals with ids that are repeated later
    for raw in content:
        block = decode_block(bytes(raw))
        if isinstance(block, Unknown):
            found.append(block)
        elif block.type == "tool_result":
            found.append(_decode_result(block, names))
        else:
            part = decode_part(block, ids)
            if isinstance(part, ToolCall):
                names[part.id] = part.name
            found.append(part)
    return tuple(found)


def _decode_result(block: ContentBlock, names: dict[str, str]) -> ToolResult:
    given = decode_json(bytes(block.content) or b"null", _list_decoder)
    content: list[Content] = []
    if isinstance(given, str):
        content += [Text(text=given)] if given else []
    else:
        for raw in given or ():
            inner = decode_block(bytes(raw))
            part = inner if isinstance(inner, Unknown) else decode_part(inner, CallIds())
            if not isinstance(part, Text | InlineData | FileRef | Unknown):
                raise BadInput("a result holds a call or a thought")
            content.append(part)
    call = block.tool_use_id or ""
    return ToolResult(
        call_id=call,
        name=names.get(call, ""),
        content=tuple(content),
        is_error=block.is_error or False,
    )


def _decode_options(request: _AnthropicRequest) -> RequestOptions:
    tools = [tool for tool in request.tools or () if tool.type in (None, "custom")]
    output = request.output_config
    generation = Generation(
        temperature=request.temperature,
        top_p=request.top_p,
        max_output=request.max_tokens,
        stop=tuple(request.stop_sequences or ()),
        effort=_effort(request),
        schema=_schema(output.format.schema) if output and output.format else "",
    )
    return RequestOptions(
        model=request.model,
        tools=tuple(_decode_tool(tool) for tool in tools),
        tool_choice=_choice(request.tool_choice),
        generation=generation,
        stream=request.stream or False,
    )


def _decode_tool(tool: _AnthropicTool) -> Declaration:
    parameters = _schema(tool.input_schema) or NO_PARAMETERS
    return Declaration(name=tool.name, description=tool.description or "", parameters=parameters)


def _choice(choice: _AnthropicToolChoice | None) -> str:
    if choice is None:
        return "auto"
    if choice.type == "tool":
        return choice.name
    return {"any": "required", "none": "none"}.get(choice.type, "auto")


def _effort(request: _AnthropicRequest) -> Effort:
    thinking, output = request.thinking, request.output_config
    if thinking is not None and thinking.type == "disabled":
        return "none"
    if thinking is not None and thinking.type == "enabled":
        # the effort whose budget is nearest in proportion
        if thinking.budget_tokens < 2 * BUDGETS["low"]:
            return "low"
        return "medium" if thinking.budget_tokens < 1.5 * BUDGETS["medium"] else "high"
    level = output.effort if output is not None else None
    if level in ("low", "medium"):
        return "low" if level == "low" else "medium"
    return "high" if level or thinking is not None else ""  # the API's own default is high


def _schema(raw: msgspec.Raw) -> str:
    text = raw_text(raw)
    if text in ("", "null"):
        return ""
    object_text(raw)  # refuses anything but an object
    return text
