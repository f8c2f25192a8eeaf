"""Arguments as a declared tool expects them: names, types and paths.

Names are mapped by `codecs/argument_names.py`, as for native calls. A type is changed only if
nothing is lost: "3" to 3, "true" to true, JSON in a string to an object or list, one value to a
list of it, a number to its text. A relative path becomes absolute where a parameter asks for that.
Everything else stays as the model wrote it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from recollect.codecs.argument_names import rename_arguments
from recollect.codecs.foreign_json import parse_object
from recollect.codecs.item_names import fit_items
from recollect.codecs.text_tools.lenient_json import (
    MAX_NUMBER,
    WrittenFloat,
    is_nested_too_deep,
    parse_strict,
)
from recollect.codecs.wire_protocol import Declaration

MAX_NESTED = 20
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "object": dict,
    "array": list,
    "null": type(None),
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_RELATIVE = re.compile(r"\b(?:relative|not absolute)\b")
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:[/\\]|[A-Za-z][A-Za-z0-9+.-]*://")


def parse_schema(tool: Declaration) -> dict[str, Any]:
    """The tool's parameters as a JSON Schema; empty when they cannot be read."""
    if is_nested_too_deep(tool.parameters):
        return {}
    value = parse_strict(tool.parameters)
    # a schema is only read, so what a call must not hold, such as a key with two values, is no harm
    return value if isinstance(value, dict) else parse_object(tool.parameters) or {}


def properties_of(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def types_of(schema: Any) -> tuple[str, ...]:
    """The types that a schema names, also those of its alternatives."""
    if not isinstance(schema, dict):
        return ()
    kinds = schema.get("type")
    named = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    found = [kind.lower() for kind in named if isinstance(kind, str)]
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        for branch in branches if isinstance(branches, list) else ():
            kind = branch.get("type") if isinstance(branch, dict) else None
            if isinstance(kind, str):
                found.append(kind.lower())
    return tuple(dict.fromkeys(found))


class DeclaredTools:
    """The declared tools and the schemas of their arguments."""

    def __init__(self, tools: tuple[Declaration, ...], root: str = "") -> None:
        self._schemas = {tool.name: parse_schema(tool) for tool in tools}
        self._root = root

    @property
    def names(self) -> Mapping[str, object]:
        return self._schemas

    def schema(self, name: str) -> dict[str, Any]:
        return self._schemas[name]

    def fit(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        properties = properties_of(self._schemas[name])
        fitted: dict[str, Any] = {}
        renamed = rename_arguments(name, arguments, properties)
        for key, value in fit_items(name, renamed, properties).items():
            schema = properties.get(key)
            fitted[key] = self._make_absolute(key, coerce(value, schema), schema)
        return fitted

    def _make_absolute(self, key: str, value: Any, schema: Any) -> Any:
        if not self._root or not isinstance(value, str) or not value or _ABSOLUTE.match(value):
            return value
        if not _wants_absolute(key, schema):
            return value
        separator = "\\" if "\\" in self._root and "/" not in self._root else "/"
        rest = value.removeprefix("./")
        return self._root.rstrip("/\\") + separator + rest if rest != "." else self._root


def _wants_absolute(key: str, schema: Any) -> bool:
    if key == "absolute_path":
        return True
    description = schema.get("description") if isinstance(schema, dict) else None
    text = description.lower() if isinstance(description, str) else ""
    if _RELATIVE.search(text):
        return False
    return "absolute" in text and ("path" in text or "path" in key.lower())


def coerce(value: Any, schema: Any, depth: int = 0) -> Any:
    """The value in a type that the schema allows, if nothing is lost by that."""
    kinds = types_of(schema)
    if depth > MAX_NESTED or not kinds:
        return value
    if not any(is_of_type(value, kind) for kind in kinds):
        value = _convert(value, kinds)
    if isinstance(value, dict) and "object" in kinds:
        inner = properties_of(schema)
        return {key: coerce(item, inner.get(key), depth + 1) for key, item in value.items()}
    if isinstance(value, list) and "array" in kinds:
        return [coerce(item, schema.get("items"), depth + 1) for item in value]
    return value


def is_of_type(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean" or kind not in _TYPES
    return isinstance(value, _TYPES.get(kind, object))


def _convert(value: Any, kinds: tuple[str, ...]) -> Any:
    for kind in kinds:
        new = _parse_as(value.strip(), kind) if isinstance(value, str) else _convert_as(value, kind)
        if new is not None:
            return new
    if "array" in kinds and value is not None and not isinstance(value, dict):
        return [value]
    return value


def _parse_as(text: str, kind: str) -> Any:
    """A string as another type; None if it cannot be that."""
    if kind == "boolean" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if kind == "integer" and len(text) <= MAX_NUMBER and _INTEGER.fullmatch(text):
        return parse_strict(text)
    if kind == "number" and len(text) <= MAX_NUMBER and _NUMBER.fullmatch(text):
        number = parse_strict(text)
        return float(number) if isinstance(number, float) else number
    if kind in ("object", "array") and text[:1] in ("{", "[") and not is_nested_too_deep(text):
        value = parse_strict(text)
        return value if is_of_type(value, kind) else None
    return None


def _convert_as(value: Any, kind: str) -> Any:
    """Any other value as another type; None if something would be lost."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "string" and is_number:
        return value.written if isinstance(value, WrittenFloat) else json.dumps(value)
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value) if abs(value) < 2**53 else None
    return None
