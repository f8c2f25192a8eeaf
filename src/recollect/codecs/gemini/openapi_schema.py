"""Whether a JSON Schema stays within the part of OpenAPI that Gemini's own `Schema` knows.

`fits_openapi` looks at nothing but the schema: a tool whose schema fits is declared with
`parameters`, any other with `parametersJsonSchema`. `lowercase_types` is for decoding: Gemini's
clients write types in upper case. Both accept schemas of any depth.
"""

from __future__ import annotations

from typing import Any

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_TEXTS = frozenset({"description", "title", "pattern"})
_COUNTS = frozenset(
    {"maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties"}
)
_LISTS = frozenset({"required", "propertyOrdering", "enum"})
_BOUNDS = frozenset({"minimum", "maximum"})
_NESTED = frozenset({"properties", "items", "anyOf"})
# Gemini answers 400 to any other format of a string
_FORMATS = {
    "string": frozenset({"enum", "date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}


def fits_openapi(schema: dict[str, Any]) -> bool:
    """Whether Gemini's `Schema` can express it."""
    waiting: list[Any] = [schema]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict) or not all(_fits(key, one) for key in one):
            return False
        # an object without properties is refused ("should be non-empty for OBJECT type")
        if one.get("type") == "object" and not one.get("properties"):
            return False
        waiting += _below(one)
    return isinstance(schema.get("type"), str)


def lowercase_types(schema: dict[str, Any]) -> bool:
    """Write types in lower case, in place; returns whether any were not."""
    waiting: list[Any] = [schema]
    changed = False
    while waiting:
        one = waiting.pop()
        if not isinstance(one, dict):
            continue
        kind = one.get("type")
        if isinstance(kind, str) and kind.lower() in TYPES and not kind.islower():
            one["type"] = kind.lower()
            changed = True
        waiting += _below(one)
    return changed


def _below(schema: dict[str, Any]) -> list[Any]:
    properties, items, choices = (schema.get(key) for key in ("properties", "items", "anyOf"))
    found = list(properties.values()) if isinstance(properties, dict) else []
    if items is not None:
        found.append(items)
    return found + (choices if isinstance(choices, list) else [])


def _fits(key: str, schema: dict[str, Any]) -> bool:
    value = schema[key]
    if key == "type":
        return isinstance(value, str) and value in TYPES
    if key == "properties":
        return isinstance(value, dict)
    if key in _NESTED:
        return isinstance(value, list if key == "anyOf" else dict)
    if key == "format":
        return isinstance(value, str) and value in _FORMATS.get(str(schema.get("type")), ())
    if key == "nullable":
        return isinstance(value, bool)
    return _fits_plain_value(key, value)


def _fits_plain_value(key: str, value: object) -> bool:
    if key in _TEXTS:
        return isinstance(value, str)
    if key in _COUNTS:
        return type(value) is int and 0 <= value < 2**31
    if key in _BOUNDS:
        return type(value) in (int, float)
    if key in _LISTS:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return key in {"default", "example"}
