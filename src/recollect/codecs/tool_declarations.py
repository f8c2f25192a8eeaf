"""Tools as users write them down: a JSON list in the form of any of the three providers."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.codecs.foreign_json import JSON_ERRORS
from recollect.codecs.wire_protocol import NO_PARAMETERS, Declaration
from recollect.entries import json_text
from recollect.errors import BadInput

_SCHEMA_KEYS = ("parameters", "input_schema", "parametersJsonSchema", "inputSchema")


def read_tools(data: bytes) -> tuple[Declaration, ...]:
    """`BadInput` says which item is not a tool."""
    try:
        value = msgspec.json.decode(data)
    except JSON_ERRORS as error:
        raise BadInput(f"the tools are not JSON: {error}") from error
    tools = tuple(_read_tool(item, n) for n, item in enumerate(_flatten(value), 1))
    names = [tool.name for tool in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"two tools have the name {twice[:60]!r}; give each its own")
    return tools


def _flatten(value: Any) -> list[Any]:
    """Gemini puts its declarations into an object, or into a list of such objects."""
    if isinstance(value, dict):
        value = value.get("tools", value.get("functionDeclarations", [value]))
    if not isinstance(value, list):
        raise BadInput("the tools are not a JSON list; write them as one")
    flat: list[Any] = []
    for item in value:
        inner = item.get("functionDeclarations") if isinstance(item, dict) else None
        flat += inner if isinstance(inner, list) else [item]
    return flat


def _read_tool(item: Any, number: int) -> Declaration:
    declared = item.get("function", item) if isinstance(item, dict) else None
    name = declared.get("name") if isinstance(declared, dict) else None
    if not isinstance(declared, dict) or not isinstance(name, str) or not name:
        raise BadInput(f"item {number} is not a tool; give it at least a name")
    description = declared.get("description")
    schemas = (declared.get(key) for key in _SCHEMA_KEYS)
    schema = next((schema for schema in schemas if isinstance(schema, dict)), None)
    return Declaration(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=NO_PARAMETERS if schema is None else json_text(schema),
    )
