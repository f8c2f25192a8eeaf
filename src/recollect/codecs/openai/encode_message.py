"""Requests in the OpenAI chat format: what is asked for, and each message on its own.

`RecordFormat` is what differs between the many servers that speak this format, as data. `initial_messages` writes
everything before the messages, `encode_message` one message, as the same bytes whatever is around it. What
cannot be carried is left out or told as a line of text, and there is a `Fix` for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.foreign_json import encode_json, raw_object
from recollect.codecs.openai.decode_parts import encode_content
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    EncodedMessage,
    Generation,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Content, Message, Text, Thought, ToolCall, ToolResult

ThinkingSwitch: TypeAlias = Literal["", "enable_thinking", "reasoning_effort"]
_WORDS = {"auto", "none", "required"}  # choices that are not a tool's name
_encode_text = msgspec.json.Encoder().encode


class OpenAIQuirks(msgspec.Struct, frozen=True, kw_only=True):
    """How one server, or one model behind it, wants the format."""

    model: str = ""
    # The field in which the model takes its own thoughts back: "reasoning_content" for DeepSeek and
    # Qwen. Empty: they are never sent.
    reasoning: str = ""
    system_role: str = "system"  # "developer" for OpenAI's o-series
    max_tokens_field: str = "max_completion_tokens"  # "max_tokens" for most other servers
    thinking_switch: ThinkingSwitch = ""  # what turns thinking off; empty: nothing does
    sampling: bool = True  # whether temperature and top_p are accepted
    max_stops: int = 4  # OpenAI refuses more
    media: tuple[str, ...] = ("image/",)  # beginnings of the mime types that the model takes


# --- the frame ---------------------------------------------------------------------------------


def encode_options(
    dialect: OpenAIQuirks, options: RequestOptions, system: Sequence[Message]
) -> RequestFrame:
    """Options and tools come first, so that they and the instructions are a stable prefix."""
    fixes: list[Fix] = []
    body: dict[str, Any] = {"model": options.model or dialect.model}
    if options.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    body |= _options(dialect, options.generation, fixes)
    body |= _tools(options, fixes)
    data, more = encode_json(body, "the options and tools", -1)
    elements = [encode_message(dialect, message) for message in system]
    for element in elements:
        fixes += [msgspec.structs.replace(fix, message=-1) for fix in element.fixes]
    first = b",".join([element.data for element in elements if element.data])
    before = data[:-1] + b',"messages":[' + first
    return RequestFrame(before, b"]}", opened=bool(first), fixes=(*fixes, *more))


def _left_out(fixes: list[Fix], line: str) -> None:
    fixes.append(Fix("uncarried", -1, line))


def _options(dialect: OpenAIQuirks, wanted: Generation, fixes: list[Fix]) -> dict[str, Any]:
    body = _sampling(dialect, wanted, fixes)
    if wanted.max_output is not None:
        body[dialect.max_tokens_field] = wanted.max_output
    if wanted.stop:
        body["stop"] = list(wanted.stop[: dialect.max_stops])
        for extra in wanted.stop[dialect.max_stops :]:
            most = f"{dialect.max_stops} are the most"
            _left_out(fixes, f"the stop word {quote_text(extra)} is left out: {most}")
    if wanted.seed is not None:
        body["seed"] = wanted.seed
    body |= _effort(dialect, wanted.effort, fixes)
    if wanted.schema:
        schema = raw_object(wanted.schema)
        if schema is None:
            _left_out(fixes, "the answer's schema is left out: it is no JSON object")
        else:
            form = {"name": "answer", "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def _sampling(dialect: OpenAIQuirks, wanted: Generation, fixes: list[Fix]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, number in (("temperature", wanted.temperature), ("top_p", wanted.top_p)):
        if number is None:
            continue
        if not dialect.sampling:
            _left_out(fixes, f"{name} is left out: the model refuses it")
        elif not math.isfinite(number):
            _left_out(fixes, f"{name} is left out: {number} is no number that JSON has")
        else:
            body[name] = number
    return body


def _effort(dialect: OpenAIQuirks, effort: str, fixes: list[Fix]) -> dict[str, Any]:
    if not effort:
        return {}
    if dialect.thinking_switch == "enable_thinking":
        # Alibaba's own service reads the first, vLLM and SGLang hand the second to the template
        # (qwen.readthedocs.io, deployment with vLLM)
        thinks = effort != "none"
        if thinks:
            _left_out(fixes, f"the effort {effort!r} is sent as thinking on: there are no degrees")
        return {"enable_thinking": thinks, "chat_template_kwargs": {"enable_thinking": thinks}}
    if effort == "none" and dialect.thinking_switch != "reasoning_effort":
        _left_out(fixes, "the effort 'none' is left out: nothing is known to turn thinking off")
        return {}
    return {"reasoning_effort": effort}


def _tools(options: RequestOptions, fixes: list[Fix]) -> dict[str, Any]:
    choice = options.tool_choice
    if not options.tools:
        if choice != "auto":
            _left_out(fixes, f"the choice {quote_text(choice)} is left out: there are no tools")
        return {}
    body: dict[str, Any] = {"tools": [_tool(tool, fixes) for tool in options.tools]}
    if choice in _WORDS:
        return body if choice == "auto" else body | {"tool_choice": choice}
    if choice not in [tool.name for tool in options.tools]:
        _left_out(fixes, f"the choice {quote_text(choice)} is left out: no tool has this name")
        return body
    return body | {"tool_choice": {"type": "function", "function": {"name": choice}}}


def _tool(tool: Declaration, fixes: list[Fix]) -> dict[str, Any]:
    parameters = raw_object(tool.parameters)
    if parameters is None:
        line = (
            f"the parameters of tool {quote_text(tool.name)} are left out: they are no JSON object"
        )
        _left_out(fixes, line)
        parameters = msgspec.Raw(NO_PARAMETERS.encode())
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function | {"parameters": parameters}}


# --- messages ----------------------------------------------------------------------------------


def encode_message(dialect: OpenAIQuirks, message: Message) -> EncodedMessage:
    """The message as its elements. No bytes at all when nothing of it can be carried."""
    parts = message.parts
    if len(parts) == 1 and type(only := parts[0]) is Text and message.role != "system":
        role = b"user" if message.role == "user" else b"assistant"
        try:
            return EncodedMessage(
                b'{"role":"' + role + b'","content":' + _encode_text(only.text) + b"}"
            )
        except UnicodeEncodeError:
            pass  # the long road puts something else in the place of what UTF-8 has not
    fixes: list[Fix] = []
    elements = [_result(part, fixes) for part in parts if isinstance(part, ToolResult)]
    speak = _assistant if message.role == "model" else _speaker
    spoken = speak(dialect, message, fixes)
    if spoken is not None:
        elements.append(spoken)
    if not elements:
        return EncodedMessage(b"", tuple(fixes))
    data, more = encode_json(elements, "a message", 0)
    return EncodedMessage(data[1:-1], (*fixes, *more))


def _speaker(dialect: OpenAIQuirks, message: Message, fixes: list[Fix]) -> dict[str, Any] | None:
    words: list[Content] = []
    for part in message.parts:
        if isinstance(part, ToolCall | Thought):
            what = "call" if isinstance(part, ToolCall) else "thought"
            line = f"a {what} is left out: the message is the {message.role}'s, not a model's"
            fixes.append(Fix("misplaced" if what == "call" else "thought", 0, line))
        elif not isinstance(part, ToolResult):
            words.append(part)
    place = "an instruction" if message.role == "system" else ""
    content = _content(words, dialect, fixes, place)
    if content is None:
        return None
    role = dialect.system_role if message.role == "system" else "user"
    return {"role": role, "content": content}


def _content(
    words: Sequence[Content], dialect: OpenAIQuirks, fixes: list[Fix], place: str
) -> str | list[dict[str, Any]] | None:
    """One text as a string; more as a list, so that reading gives the same parts back."""
    if len(words) == 1 and isinstance(words[0], Text):
        return words[0].text
    made = [encode_content(word, dialect.media, fixes, place=place) for word in words]
    return [part for part in made if part is not None] or None


def _assistant(dialect: OpenAIQuirks, message: Message, fixes: list[Fix]) -> dict[str, Any] | None:
    calls: list[dict[str, Any]] = []
    thoughts: list[str] = []
    words: list[Content] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            calls.append(_call(part, fixes))
        elif isinstance(part, Thought):
            _think(part, dialect, thoughts, fixes)
        elif not isinstance(part, ToolResult):
            words.append(part)
    content = _content(words, dialect, fixes, "a model's message")
    if content is None and not calls and not thoughts:
        return None
    body: dict[str, Any] = {"role": "assistant"}
    if thoughts or (dialect.reasoning and calls):
        # DeepSeek refuses a call without the field, also when nothing was thought
        # (deepseek-ai/deepseek-harness#739)
        body[dialect.reasoning] = "\n".join(thoughts)
    body["content"] = "" if content is None and not calls else content
    if calls:
        body["tool_calls"] = calls
    return body


def _think(thought: Thought, dialect: OpenAIQuirks, thoughts: list[str], fixes: list[Fix]) -> None:
    if not dialect.reasoning:
        line = f"a thought of {len(thought.text):,} characters is left out: there is no field"
        fixes.append(Fix("thought", 0, line))
        return
    thoughts.append(thought.text)
    lost = [what for what in ("subject", "signature") if getattr(thought, what)]
    if lost:
        line = f"a thought's {' and '.join(lost)} left out: there is no field for it"
        fixes.append(Fix("uncarried", 0, line))


def _call(call: ToolCall, fixes: list[Fix]) -> dict[str, Any]:
    if call.signature:
        line = f"the signature of call {quote_text(call.id)} is left out: there is no field for it"
        fixes.append(Fix("uncarried", 0, line, call.id))
    # a string, so also malformed arguments are sent as the model wrote them
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _result(result: ToolResult, fixes: list[Fix]) -> dict[str, Any]:
    """Text only: few servers take a list here, and none takes pictures."""
    if result.is_error:
        line = f"that the result for call {quote_text(result.call_id)} is an error stands nowhere"
        fixes.append(Fix("uncarried", 0, line + ": there is no field for it", result.call_id))
    made = [encode_content(part, (), fixes, place="a tool's result") for part in result.content]
    text = "\n".join([part["text"] for part in made if part is not None])
    return {"role": "tool", "tool_call_id": result.call_id, "content": text}
