"""Everything in a Gemini request except its contents: instructions, tools, settings, in this order.

Guarantees: the same options and instructions give the same bytes. The schemas of tools and of the
reply are embedded as the very text they are. Options that Gemini does not accept are left out and
reported as a `Fix` for message -1. The model's name and streaming are in the address, not the body.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.fixes import Fix, leave_out, leave_out_choice, quote_text
from recollect.codecs.foreign_json import SURROGATES, encode, replace_surrogates
from recollect.codecs.gemini.encode_message import encode_object
from recollect.codecs.gemini.openapi_schema import fits_openapi
from recollect.codecs.provider_rules import GeminiQuirks, GeminiThinking
from recollect.codecs.tool_names import name_tools, sent_tool_name
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    Effort,
    Generation,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message, Text

BUDGETS: dict[Effort, int] = {"none": 0, "low": 1_024, "medium": 8_192, "high": 24_576}
LEVELS: dict[Effort, str] = {"none": "MINIMAL", "low": "LOW", "medium": "MEDIUM", "high": "HIGH"}
MAX_STOPS = 5  # more of them are refused
_INT32 = range(-(2**31), 2**31)


def encode_options(
    quirks: GeminiQuirks, options: RequestOptions, system: Sequence[Message]
) -> RequestFrame:
    try:
        return _encode(options, system, quirks.thinking, [])
    except UnicodeEncodeError:
        fixes = [Fix("uncarried", -1, SURROGATES)]
        clean = replace_surrogates(tuple(system))
        return _encode(replace_surrogates(options), clean, quirks.thinking, fixes)


def _encode(
    options: RequestOptions, system: Sequence[Message], thinking: GeminiThinking, fixes: list[Fix]
) -> RequestFrame:
    body: dict[str, Any] = {}
    if instructions := _instructions(system, fixes):
        body["systemInstruction"] = {"parts": instructions}
    if options.tools:
        named = name_tools(options.tools, "gemini", fixes)
        declared = [_declaration(name, tool, fixes) for name, tool in named]
        body["tools"] = [{"functionDeclarations": declared}]
        if options.generation.parallel_calls is False:
            leave_out(fixes, "the wish for one call at a time is left out: Gemini knows none")
    if config := _tool_choice(options, fixes):
        body["toolConfig"] = {"functionCallingConfig": config}
    if settings := _generation(options.generation, thinking, fixes):
        body["generationConfig"] = settings
    before = encode(body)[:-1] + (b"," if body else b"") + b'"contents":['
    return RequestFrame(before, b"]}", fixes=tuple(fixes))


def _instructions(system: Sequence[Message], fixes: list[Fix]) -> list[dict[str, str]]:
    parts = []
    for message in system:
        for part in message.parts:
            if not isinstance(part, Text):
                kind = type(part).__name__
                leave_out(fixes, f"a {kind} in an instruction is left out: Gemini accepts text")
            elif part.text:
                parts.append({"text": part.text})
    return parts


def _declaration(name: str, tool: Declaration, fixes: list[Fix]) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": name}
    if tool.description:
        declared["description"] = tool.description
    if tool.parameters in (NO_PARAMETERS, ""):
        return declared
    data = encode_object(tool.parameters)
    if data is None:
        line = f"the parameters of tool {quote_text(tool.name)} are not a JSON object: left out"
        leave_out(fixes, line)
        return declared
    key = "parameters" if fits_openapi(msgspec.json.decode(data)) else "parametersJsonSchema"
    declared[key] = msgspec.Raw(data)
    return declared


def _tool_choice(options: RequestOptions, fixes: list[Fix]) -> dict[str, Any] | None:
    choice = options.tool_choice
    if choice == "auto":
        return None
    if not options.tools:
        # Gemini answers 400 to a choice without tools; "none" changes nothing then
        leave_out_choice(fixes, choice)
        return None
    if choice in ("none", "required"):
        return {"mode": "NONE" if choice == "none" else "ANY"}
    return {"mode": "ANY", "allowedFunctionNames": [sent_tool_name(choice, "gemini")]}


def _generation(
    generation: Generation, thinking: GeminiThinking, fixes: list[Fix]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, number in (("temperature", generation.temperature), ("topP", generation.top_p)):
        if number is not None and math.isfinite(number):
            found[key] = number
        elif number is not None:
            leave_out(fixes, f"{key} is left out: {number} is not a number")
    for key, integer in (("maxOutputTokens", generation.max_output), ("seed", generation.seed)):
        if integer is not None and integer in _INT32:
            found[key] = integer
        elif integer is not None:
            leave_out(fixes, f"{key} is left out: the number has more than 32 bits")
    if generation.stop:
        found["stopSequences"] = generation.stop[:MAX_STOPS]
    for text in generation.stop[MAX_STOPS:]:
        leave_out(fixes, f"stop {quote_text(text)} is left out: Gemini accepts {MAX_STOPS}")
    _think(generation.effort, thinking, found, fixes)
    _reply_schema(generation.schema, found, fixes)
    return found


def _think(
    effort: Effort, thinking: GeminiThinking, found: dict[str, Any], fixes: list[Fix]
) -> None:
    if not effort:
        return
    if thinking == "no":
        if effort != "none":
            leave_out(fixes, f"the effort {effort!r} is left out: this model does not think")
        return
    if thinking == "level" and effort == "none":
        leave_out(fixes, "thinking cannot be switched off: the lowest level is sent")
    amount = (
        {"thinkingBudget": BUDGETS[effort]}
        if thinking == "budget"
        else {"thinkingLevel": LEVELS[effort]}
    )
    found["thinkingConfig"] = {"includeThoughts": effort != "none", **amount}


def _reply_schema(schema: str, found: dict[str, Any], fixes: list[Fix]) -> None:
    if not schema:
        return
    data = encode_object(schema)
    if data is None:
        leave_out(fixes, "the reply's schema is not a JSON object: left out")
        return
    found["responseMimeType"] = "application/json"
    found["responseJsonSchema"] = msgspec.Raw(data)
