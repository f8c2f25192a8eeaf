"""Everything in a request to Anthropic but its messages.

Guarantees: options, tools and instructions stand before the messages, in one fixed order, so two
requests of a session begin with the same bytes. What the API would refuse (a temperature while it
thinks, a forced tool while it thinks, a blank stop sequence …) is left out and told as a `Fix`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from recollect.codecs.anthropic.encode_message import parse_object, replace_surrogates
from recollect.codecs.fixes import Fix, quote_text
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    Generation,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message, Text

# budget  a number of tokens, for models up to Claude 4.6, which are told no other way
# adaptive  the model decides, and `effort` says how much; Opus 4.7 and later refuse a budget
AnthropicThinking: TypeAlias = Literal["budget", "adaptive"]
BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384}
LEAST_BUDGET = 1_024
MARK = {"type": "ephemeral"}


class AnthropicQuirks(msgspec.Struct, frozen=True):
    """What of a wire's settings a frame depends on."""

    model: str
    max_output: int
    cache: bool
    sampling: bool
    thinking: AnthropicThinking


def encode_options(
    options: RequestOptions, system: Sequence[Message], quirks: AnthropicQuirks
) -> RequestFrame:
    fixes: list[Fix] = []
    generation = options.generation
    most = generation.max_output or quirks.max_output
    body: dict[str, Any] = {
        "model": options.model or quirks.model,
        "max_tokens": most,
        "stream": options.stream,
    }
    choice = _choice(options, fixes)
    forced = choice is not None and choice["type"] in ("any", "tool")
    body |= _thinking(generation, most, quirks, fixes, forced=forced)
    thinks = body.get("thinking", {}).get("type", "disabled") != "disabled"
    body |= _sampling(generation, quirks, fixes, thinks=thinks)
    body |= _ending(generation, fixes)
    if quirks.cache:
        # The API puts this mark on the last block by itself. A mark written into a message would
        # have to move on with every request, and the bytes before it would not stay the same.
        body["cache_control"] = MARK
    if choice is not None:
        body["tool_choice"] = choice
    if options.tools:
        body["tools"] = _marked([_tool(tool, fixes) for tool in options.tools], quirks)
    if blocks := _instructions(system, fixes):
        body["system"] = _marked(blocks, quirks)
    return RequestFrame(_encoded(body, fixes)[:-1] + b',"messages":[', b"]}", fixes=tuple(fixes))


def _encoded(body: dict[str, Any], fixes: list[Fix]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        fixes.append(_fix("text that UTF-8 cannot carry is sent with U+FFFD in its place"))
        return msgspec.json.encode(_sound(body))


def _sound(value: Any) -> Any:
    """Calls itself on what this module built, which is four levels deep."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {key: _sound(item) for key, item in value.items()}
    return [_sound(item) for item in value] if isinstance(value, list | tuple) else value


def _marked(blocks: list[dict[str, Any]], quirks: AnthropicQuirks) -> list[dict[str, Any]]:
    if quirks.cache:
        blocks[-1]["cache_control"] = MARK
    return blocks


def _thinking(
    generation: Generation, most: int, quirks: AnthropicQuirks, fixes: list[Fix], *, forced: bool
) -> dict[str, Any]:
    effort, output = generation.effort, _format(generation, fixes)
    body: dict[str, Any] = {}
    budget = min(BUDGETS.get(effort, 0), most - 1)
    if effort == "none":
        body["thinking"] = {"type": "disabled"}
    elif effort and forced:
        fixes.append(_fix("thinking is left out: it cannot go with a tool that must be called"))
    elif effort and quirks.thinking == "adaptive":
        body["thinking"] = {"type": "adaptive"}
        output["effort"] = effort
    elif effort and budget < LEAST_BUDGET:
        line = f"thinking is left out: it needs {LEAST_BUDGET:,} tokens, of {most:,} for the answer"
        fixes.append(_fix(line))
    elif effort:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return body | ({"output_config": output} if output else {})


def _format(generation: Generation, fixes: list[Fix]) -> dict[str, Any]:
    if not generation.schema:
        return {}
    schema = _schema(generation.schema)
    if schema is None:
        fixes.append(
            _fix(f"the answer's schema is no JSON object: {quote_text(generation.schema)}")
        )
        return {}
    return {"format": {"type": "json_schema", "schema": schema}}


def _schema(text: str) -> msgspec.Raw | None:
    text = replace_surrogates(text)
    return None if parse_object(text) is None else msgspec.Raw(text.encode())


def _sampling(
    generation: Generation, quirks: AnthropicQuirks, fixes: list[Fix], *, thinks: bool
) -> dict[str, Any]:
    temperature, top_p = generation.temperature, generation.top_p
    given = [n for n, v in (("temperature", temperature), ("top_p", top_p)) if v is not None]
    if given and not quirks.sampling:
        # removed in API version 2026-10-21, and refused by models since Claude Opus 4.7
        fixes.append(_fix(f"{' and '.join(given)} left out: this model takes neither"))
        return {}
    body: dict[str, Any] = {}
    if temperature is not None:
        usable = _within(temperature, 0, 1)
        if usable is None or (thinks and usable != 1):
            why = "only 1 is taken while it thinks" if thinks else "it is no number"
            fixes.append(_fix(f"the temperature {temperature} is left out: {why}"))
        else:
            body["temperature"] = usable
            if usable != temperature:
                fixes.append(_fix(f"the temperature {temperature} is sent as {usable}"))
    if top_p is not None:
        why = _why_no_top_p(top_p, thinks=thinks, has_temperature="temperature" in body)
        if why:
            fixes.append(_fix(f"top_p {top_p} is left out: {why}"))
        else:
            body["top_p"] = top_p
    return body


def _within(value: float, least: float, most: float) -> float | None:
    return min(max(value, least), most) if math.isfinite(value) else None


def _why_no_top_p(top_p: float, *, thinks: bool, has_temperature: bool) -> str:
    if has_temperature:  # models since Claude Opus 4.1 answer 400 when both are there
        return "the temperature is sent, and only one of the two may be"
    if thinks and not 0.95 <= top_p <= 1:
        return "only 0.95 to 1 is taken while it thinks"
    return "" if 0 <= top_p <= 1 else "it is not between 0 and 1"


def _ending(generation: Generation, fixes: list[Fix]) -> dict[str, Any]:
    if generation.seed is not None:
        fixes.append(_fix("the seed is left out: the provider knows none"))
    stop = [text for text in generation.stop if text.strip()]
    if len(stop) < len(generation.stop):
        fixes.append(_fix("a blank stop sequence is left out: the provider takes none"))
    return {"stop_sequences": stop} if stop else {}


def _choice(options: RequestOptions, fixes: list[Fix]) -> dict[str, str] | None:
    choice = options.tool_choice
    if choice == "auto":
        return None
    if not options.tools:
        if choice != "none":
            fixes.append(
                _fix(f"the choice of tool {quote_text(choice)} is left out: there are none")
            )
        return None
    if choice == "none":
        return {"type": "none"}
    return {"type": "any"} if choice == "required" else {"type": "tool", "name": choice}


def _tool(tool: Declaration, fixes: list[Fix]) -> dict[str, Any]:
    schema: object = _schema(tool.parameters)
    found = parse_object(replace_surrogates(tool.parameters))
    if found is None:
        line = (
            f"the parameters of tool {quote_text(tool.name)} are no JSON object: sent without any"
        )
        fixes.append(_fix(line))
        schema = msgspec.Raw(NO_PARAMETERS.encode())
    elif "type" not in found:  # required here, and left out by many tools without parameters
        schema = {"type": "object", **found}
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "input_schema": schema}


def _instructions(system: Sequence[Message], fixes: list[Fix]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for message in system:
        for part in message.parts:
            if not isinstance(part, Text):
                kind = type(part).__name__
                fixes.append(_fix(f"a part of the instructions is left out, being a {kind}"))
            elif part.text.strip():
                blocks.append({"type": "text", "text": part.text})
    return blocks


def _fix(text: str) -> Fix:
    return Fix("uncarried", -1, text)
