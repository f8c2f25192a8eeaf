"""Tools as people write them down: a JSON list in the form of any of the three providers."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.codecs.wire_protocol import NO_PARAMETERS, Declaration
from recollect.entries import json_text
from recollect.errors import BadInput

_SCHEMA_KEYS = ("parameters", "input_schema", "parametersJsonSchema", "inputSchema")


def read_tools(data: bytes) -> tuple[Declaration, ...]:
    """`BadInput` says which item is no tool."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadInput(f"the tools are no JSON: {error}") from error
    found = tuple(_tool(item, n) for n, item in enumerate(_listed(value), 1))
    names = [tool.name for tool in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"two tools have the name {twice[:60]!r}; each needs its own")
    return found


def _listed(value: Any) -> list[Any]:
    """Gemini puts its declarations into an object, or into a list of such objects."""
    if isinstance(value, dict):
        value = value.get("tools", value.get("functionDeclarations", [value]))
    if not isinstance(value, list):
        raise BadInput("the tools must be a JSON list")
    flat: list[Any] = []
    for item in value:
        inner = item.get("functionDeclarations") if isinstance(item, dict) else None
        flat += inner if isinstance(inner, list) else [item]
    return flat


def _tool(item: Any, number: int) -> Declaration:
    told = item.get("function", item) if isinstance(item, dict) else None
    if not isinstance(told, dict) or not isinstance(told.get("name"), str) or not told["name"]:
        raise BadInput(f"item {number} is no tool: it needs at least a name")
    description = told.get("description")
    schema = next((told[key] for key in _SCHEMA_KEYS if isinstance(told.get(key), dict)), None)
    return Declaration(
        name=told["name"],
        description=description if isinstance(description, str) else "",
        parameters=NO_PARAMETERS if schema is None else json_text(schema),
    )
