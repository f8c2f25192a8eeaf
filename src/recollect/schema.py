"""The published JSON Schema of an entry, as `recollect schema` prints it."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.entries import SCHEMA_VERSION, Entry


def json_schema() -> dict[str, Any]:
    """The published schema. It allows unknown fields, because readers must keep them."""
    (root,), parts = msgspec.json.schema_components([Entry], ref_template="#/$defs/{name}")
    for name in ("Unknown", "UnknownBody"):
        parts.pop(name)
    for part in parts.values():
        part.pop("additionalProperties", None)
        part.get("properties", {}).pop("$extra", None)
    _forget_unknown(parts)
    parts["Entry"]["properties"]["v"] = {"const": SCHEMA_VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"recollect entry, version {SCHEMA_VERSION}",
        "description": "Readers keep fields, part types and kinds that they do not know.",
        **root,
        "$defs": parts,
    }


def _forget_unknown(value: Any) -> None:
    if isinstance(value, dict):
        if "anyOf" in value:
            hidden = ("#/$defs/Unknown", "#/$defs/UnknownBody")
            value["anyOf"] = [v for v in value["anyOf"] if v.get("$ref") not in hidden]
        value.get("mapping", {}).pop("$unknown", None)
        for item in value.values():
            _forget_unknown(item)
    elif isinstance(value, list):
        for item in value:
            _forget_unknown(item)
