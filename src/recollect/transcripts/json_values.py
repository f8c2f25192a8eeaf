"""Values from other programs' JSON, where any field may hold anything."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from recollect.codecs.foreign_json import read_count
from recollect.entries import json_text

Json: TypeAlias = dict[str, Any]
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_encode_in_order = msgspec.json.Encoder().encode
_NOT_FLAT = frozenset({dict, list, float})
_CANONICAL = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def string_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def object_or_empty(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def objects_in(value: object) -> list[Json]:
    """The objects of a list; none if the value is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings_in(value: object) -> tuple[str, ...]:
    """The strings of a list that are not empty; none if the value is no list."""
    items = value if isinstance(value, list) else ()
    return tuple(item for item in items if isinstance(item, str) and item)


def count_or_none(value: object) -> int | None:
    """A number of tokens; None for anything else, also for one that no window could hold."""
    return value if type(value) is int and read_count(value) == value else None


def too_deep(value: Any, limit: int) -> bool:
    """Whether objects and lists are nested in more than `limit` levels."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def decode_base64(value: object) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        return None


def canonical_json(value: Json) -> str:
    """The same text for the same value; ids are derived from it, so it must never change."""
    return _write(value, _encode_sorted, _CANONICAL)


def quick_json_text(value: Any) -> str:
    """What `json_text` gives for a value that came from JSON, in a third of the time."""
    return _write(value, _encode_in_order, json_text)


def _write(value: Any, quick: Callable[[Any], bytes], exact: Callable[[Any], str]) -> str:
    try:
        has_floats = type(value) in _NOT_FLAT and _has_floats(value)
        # 1e16 is 1e+16 in Python
        return exact(value) if has_floats else quick(value).decode()
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return exact(value)  # lone surrogates


def _has_floats(value: Any) -> bool:
    if type(value) is float:
        return True
    for item in value.values() if type(value) is dict else value:
        if type(item) in _NOT_FLAT and _has_floats(item):
            return True
    return False
