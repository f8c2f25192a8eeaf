"""Everything in a request to Anthropic except its messages.

Guarantees: options, tools and instructions stand before the messages, in one fixed order, so two
requests of a session begin with the same bytes. Options that the API would refuse (a temperature
while it thinks, a forced tool while it thinks, a blank stop sequence …) are left out and reported
as a `Fix`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.codecs.fixes import Fix, leave_out, leave_out_choice, quote_text
from recollect.codecs.foreign_json import (
    SURROGATES,
    encode,
    parse_object,
    raw_object,
    replace_surrogates,
)
from recollect.codecs.provider_rules import AnthropicQuirks
from recollect.codecs.tool_names import name_tools, sent_tool_name
from recollect.codecs.wire_protocol import (
    NO_PARAMETERS,
    Declaration,
    Generation,
    RequestFrame,
    RequestOptions,
)
from recollect.entries import Message, Text

BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384}
_LEAST_BUDGET = 1_024
_MARK = {"type": "ephemeral"}


def encode_options(
    quirks: AnthropicQuirks, options: RequestOptions, system: Sequence[Message]
) -> RequestFrame:
    fixes: list[Fix] = []
    generation = options.generation
    most = generation.max_output or quirks.max_output
    body: dict[str, Any] = {
        "model": options.model or quirks.model,
        "max_tokens": most,
        "stream": options.stream,
    }
    choice = _tool_choice(options, fixes)
    forced = choice is not None and choice["type"] in ("any", "tool")
    body |= _thinking(generation, most, quirks, fixes, forced=forced)
    thinks = body.get("thinking", {}).get("type", "disabled") != "disabled"
    body |= _sampling(generation, quirks, fixes, thinks=thinks)
    body |= _ending(generation, fixes)
    if quirks.cache:
        # The API moves this mark to the last block by itself. A mark inside a message would have to
        # move with every request, and the bytes before it would not stay the same.
        body["cache_control"] = _MARK
    if choice is not None:
        body["tool_choice"] = choice
    if options.tools:
        named = name_tools(options.tools, "anthropic", fixes)
        body["tools"] = _mark_last([_tool(name, tool, fixes) for name, tool in named], quirks)
    if blocks := _instructions(system, fixes):
        body["system"] = _mark_last(blocks, quirks)
    try:
        data = encode(body)
    except UnicodeEncodeError:
        leave_out(fixes, SURROGATES)
        data = encode(replace_surrogates(body))
    return RequestFrame(data[:-1] + b',"messages":[', b"]}", fixes=tuple(fixes))


def _mark_last(blocks: list[dict[str, Any]], quirks: AnthropicQuirks) -> list[dict[str, Any]]:
    if quirks.cache:
        blocks[-1]["cache_control"] = _MARK
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
        leave_out(fixes, "thinking is left out: it cannot be combined with a forced tool call")
    elif effort and quirks.thinking == "adaptive":
        body["thinking"] = {"type": "adaptive"}
        output["effort"] = effort
    elif effort and budget < _LEAST_BUDGET:
        line = f"thinking is left out: it needs {_LEAST_BUDGET:,} of {most:,} output tokens"
        leave_out(fixes, line)
    elif effort:
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    return body | ({"output_config": output} if output else {})


def _format(generation: Generation, fixes: list[Fix]) -> dict[str, Any]:
    if not generation.schema:
        return {}
    schema = raw_object(replace_surrogates(generation.schema))
    if schema is None:
        line = f"the reply's schema is not a JSON object: {quote_text(generation.schema)}"
        leave_out(fixes, line)
        return {}
    return {"format": {"type": "json_schema", "schema": schema}}


def _sampling(
    generation: Generation, quirks: AnthropicQuirks, fixes: list[Fix], *, thinks: bool
) -> dict[str, Any]:
    temperature, top_p = generation.temperature, generation.top_p
    given = [n for n, v in (("temperature", temperature), ("top_p", top_p)) if v is not None]
    if given and not quirks.sampling:
        # removed in API version 2026-10-21, and refused by models since Claude Opus 4.7
        leave_out(fixes, f"{' and '.join(given)} left out: this model accepts neither")
        return {}
    body: dict[str, Any] = {}
    if temperature is not None:
        usable = min(max(temperature, 0), 1) if math.isfinite(temperature) else None
        if usable is None or (thinks and usable != 1):
            why = "only 1 is accepted while it thinks" if thinks else "it is not a number"
            leave_out(fixes, f"the temperature {temperature} is left out: {why}")
        else:
            body["temperature"] = usable
            if usable != temperature:
                leave_out(fixes, f"the temperature {temperature} is sent as {usable}")
    if top_p is not None:
        why = _why_no_top_p(top_p, thinks=thinks, has_temperature="temperature" in body)
        if why:
            leave_out(fixes, f"top_p {top_p} is left out: {why}")
        else:
            body["top_p"] = top_p
    return body


def _why_no_top_p(top_p: float, *, thinks: bool, has_temperature: bool) -> str:
    if has_temperature:  # models since Claude Opus 4.1 answer 400 when both are there
        return "the temperature is sent, and the provider accepts only one of the two"
    if thinks and not 0.95 <= top_p <= 1:
        return "only 0.95 to 1 is accepted while it thinks"
    return "" if 0 <= top_p <= 1 else "it is not between 0 and 1"


def _ending(generation: Generation, fixes: list[Fix]) -> dict[str, Any]:
    if generation.seed is not None:
        leave_out(fixes, "the seed is left out: the provider accepts none")
    stop = [text for text in generation.stop if text.strip()]
    if len(stop) < len(generation.stop):
        leave_out(fixes, "a blank stop sequence is left out: the provider refuses it")
    return {"stop_sequences": stop} if stop else {}


def _tool_choice(options: RequestOptions, fixes: list[Fix]) -> dict[str, Any] | None:
    choice = _named_choice(options, fixes)
    if options.generation.parallel_calls is False and options.tools:
        if choice is None:
            choice = {"type": "auto"}
        if choice["type"] != "none":
            choice["disable_parallel_tool_use"] = True
    return choice


def _named_choice(options: RequestOptions, fixes: list[Fix]) -> dict[str, Any] | None:
    choice = options.tool_choice
    if choice == "auto":
        return None
    if not options.tools:
        leave_out_choice(fixes, choice)
        return None
    if choice == "none":
        return {"type": "none"}
    if choice == "required":
        return {"type": "any"}
    return {"type": "tool", "name": sent_tool_name(choice, "anthropic")}


def _tool(name: str, tool: Declaration, fixes: list[Fix]) -> dict[str, Any]:
    text = replace_surrogates(tool.parameters)
    found = parse_object(text)
    schema: object = msgspec.Raw(text.encode())
    if found is None:
        line = f"the parameters of tool {quote_text(tool.name)} are not a JSON object: left out"
        leave_out(fixes, line)
        schema = msgspec.Raw(NO_PARAMETERS.encode())
    elif "type" not in found:  # required here, and left out by many tools without parameters
        schema = {"type": "object", **found}
    described = {"description": tool.description} if tool.description else {}
    return {"name": name, **described, "input_schema": schema}


def _instructions(system: Sequence[Message], fixes: list[Fix]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for message in system:
        for part in message.parts:
            if not isinstance(part, Text):
                kind = type(part).__name__
                leave_out(fixes, f"a part of the instructions is left out, being a {kind}")
            elif part.text.strip():
                blocks.append({"type": "text", "text": part.text})
    return blocks
