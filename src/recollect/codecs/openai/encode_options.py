"""Everything in a request of the OpenAI chat format except its messages.

Options and tools come first, so that they and the instructions are a stable prefix. Options that
the server would refuse are left out and reported as a `Fix`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.fixes import Fix, leave_out, leave_out_choice, quote_text
from recollect.codecs.foreign_json import encode_json, raw_object
from recollect.codecs.openai.encode_message import encode_message
from recollect.codecs.provider_rules import OpenAIQuirks
from recollect.codecs.tool_names import name_tools, sent_tool_name
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    Generation,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message

_CHOICES = {"auto", "none", "required"}  # any other tool choice is a tool's name


def encode_options(
    quirks: OpenAIQuirks, options: RequestOptions, system: Sequence[Message]
) -> RequestFrame:
    fixes: list[Fix] = []
    body: dict[str, Any] = {"model": options.model or quirks.model}
    if options.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    body |= _options(quirks, options.generation, fixes)
    body |= _tools(options, fixes)
    data, more = encode_json(body, "the options and tools", -1)
    if quirks.alternating_roles and len(system) > 1:
        parts = tuple(part for message in system for part in message.parts)
        system = (Message(role="system", parts=parts),)
    elements = [encode_message(quirks, message) for message in system]
    for element in elements:
        fixes += [msgspec.structs.replace(fix, message=-1) for fix in element.fixes]
    first = b",".join([element.data for element in elements if element.data])
    before = data[:-1] + b',"messages":[' + first
    return RequestFrame(before, b"]}", opened=bool(first), fixes=(*fixes, *more))


def _options(quirks: OpenAIQuirks, generation: Generation, fixes: list[Fix]) -> dict[str, Any]:
    body = _sampling(quirks, generation, fixes)
    if generation.max_output is not None:
        body[quirks.max_tokens_field] = generation.max_output
    if generation.stop:
        body["stop"] = list(generation.stop[: quirks.max_stops])
        for extra in generation.stop[quirks.max_stops :]:
            most = f"{quirks.max_stops} are accepted"
            leave_out(fixes, f"the stop word {quote_text(extra)} is left out: {most}")
    if generation.seed is not None:
        body["seed"] = generation.seed
    body |= _effort(quirks, generation.effort, fixes)
    if generation.schema:
        schema = raw_object(generation.schema)
        if schema is None:
            leave_out(fixes, "the reply's schema is left out: it is not a JSON object")
        else:
            form = {"name": "answer", "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def _sampling(quirks: OpenAIQuirks, generation: Generation, fixes: list[Fix]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, number in (("temperature", generation.temperature), ("top_p", generation.top_p)):
        if number is None:
            continue
        if not quirks.sampling:
            leave_out(fixes, f"{name} is left out: the model refuses it")
        elif not math.isfinite(number):
            leave_out(fixes, f"{name} is left out: JSON has no {number}")
        else:
            body[name] = number
    return body


def _effort(quirks: OpenAIQuirks, effort: str, fixes: list[Fix]) -> dict[str, Any]:
    if not effort:
        return {}
    if quirks.thinking_switch == "enable_thinking":
        # Alibaba's own service reads the first, vLLM and SGLang pass the second to the template
        # (qwen.readthedocs.io, deployment with vLLM)
        thinks = effort != "none"
        if thinks:
            leave_out(
                fixes, f"the effort {effort!r} is sent as thinking on: the server knows no degrees"
            )
        return {"enable_thinking": thinks, "chat_template_kwargs": {"enable_thinking": thinks}}
    if effort == "none" and quirks.thinking_switch != "reasoning_effort":
        leave_out(fixes, "the effort 'none' is left out: no field is known to turn thinking off")
        return {}
    return {"reasoning_effort": effort}


def _tools(options: RequestOptions, fixes: list[Fix]) -> dict[str, Any]:
    choice = options.tool_choice
    if not options.tools:
        leave_out_choice(fixes, choice)
        return {}
    body: dict[str, Any] = {"tools": _declare(options.tools, fixes)}
    if options.generation.parallel_calls is not None:
        body["parallel_tool_calls"] = options.generation.parallel_calls
    if choice in _CHOICES:
        return body if choice == "auto" else body | {"tool_choice": choice}
    if choice not in [tool.name for tool in options.tools]:
        leave_out(fixes, f"the tool choice {quote_text(choice)} is left out: no tool has this name")
        return body
    name = sent_tool_name(choice, "openai")
    return body | {"tool_choice": {"type": "function", "function": {"name": name}}}


def _declare(tools: Sequence[Declaration], fixes: list[Fix]) -> list[dict[str, Any]]:
    return [_tool(name, tool, fixes) for name, tool in name_tools(tools, "openai", fixes)]


def _tool(name: str, tool: Declaration, fixes: list[Fix]) -> dict[str, Any]:
    parameters = raw_object(tool.parameters)
    if parameters is None:
        line = f"the parameters of tool {quote_text(tool.name)} are not a JSON object: left out"
        leave_out(fixes, line)
        parameters = msgspec.Raw(NO_PARAMETERS.encode())
    function: dict[str, Any] = {"name": name}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function | {"parameters": parameters}}
