"""Arguments against the declared schema, with the schema's own words for what is wrong.

Checked are required arguments, types and enumerated values, also in nested objects and lists. What
a schema says in other ways (references, patterns, ranges) is left to the tool itself, so no call is
refused that the tool would accept. Null stands for an argument that is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from recollect.codecs.fixes import quote_text
from recollect.codecs.text_tools.argument_coercion import (
    MAX_NESTED,
    is_of_type,
    properties_of,
    types_of,
)
from recollect.codecs.text_tools.tool_instructions import describe_type, on_one_line

MAX_SHOWN = 3  # defects that one message names
MAX_DESCRIPTION = 120
_JSON_NAMES = {bool: "a boolean", str: "a string", dict: "an object", list: "a list"}


def find_argument_problem(arguments: dict[str, Any], schema: dict[str, Any]) -> str:
    """What is wrong with these arguments; empty if nothing is."""
    found: list[str] = []
    for problem in _problems(arguments, schema, "", 0):
        if len(found) == MAX_SHOWN:
            found.append("…")
            break
        found.append(problem)
    return "; ".join(found)


def _problems(value: Any, schema: Any, path: str, depth: int) -> Iterator[str]:
    if not isinstance(schema, dict) or depth > MAX_NESTED:
        return
    if isinstance(value, dict):
        properties = properties_of(schema)
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and value.get(name) is None:
                inner = properties.get(name)
                if "null" not in types_of(inner) or name not in value:
                    yield f"the required argument {_describe(path + name, inner)} is missing"
        for name, item in value.items():
            if name in properties and item is not None:
                yield from _value_problems(item, properties[name], path + name, depth + 1)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _value_problems(item, schema.get("items"), f"{path}{number}", depth + 1)


def _value_problems(value: Any, schema: Any, path: str, depth: int) -> Iterator[str]:
    if not isinstance(schema, dict) or value is None:
        return
    kinds = () if _has_untyped_branch(schema) else types_of(schema)
    if kinds and not any(is_of_type(value, kind) for kind in kinds):
        given = _JSON_NAMES.get(type(value), "a number")
        yield f"the argument {_describe(path, schema)} is {given}: {quote_text(str(value))}"
        return
    allowed = schema.get("enum")
    if isinstance(allowed, list) and allowed and value not in allowed and str(value) not in allowed:
        yield f"the argument {_describe(path, schema)} is {quote_text(str(value))}"
        return
    yield from _problems(value, schema, path + ".", depth)


def _has_untyped_branch(schema: dict[str, Any]) -> bool:
    """Whether another way of saying what is allowed may allow any type."""
    if "$ref" in schema or "allOf" in schema:
        return True
    branches = [
        b for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list) for b in schema[key]
    ]
    return any(not isinstance(b, dict) or not isinstance(b.get("type"), str) for b in branches)


def _describe(path: str, schema: Any) -> str:
    """An argument as the instructions list it."""
    described = schema.get("description") if isinstance(schema, dict) else None
    text = on_one_line(described)[:MAX_DESCRIPTION] if isinstance(described, str) else ""
    return f"{quote_text(path)} ({describe_type(schema)}{': ' + text if text else ''})"
