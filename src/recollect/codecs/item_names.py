"""The names inside the items of a list, as models know them from other agents' tools.

Steps of a plan: Gemini CLI calls the text `description`, others `title` or `step`, and a step that
is done `done` or `complete`; `plan_steps.py` reads the same names from the log. Files to read: the
lines of one may be called `start_line` and `end_line`, or be an offset and a limit. An item is
changed only if the tool's schema has our names and lacks the one used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from recollect.codecs.line_ranges import LineRange, names_lines, parse_line_range, snake_case
from recollect.plan_steps import STATUS_KEYS, StepStatus, find_step_text, name_status

_Item: TypeAlias = dict[str, Any]
_FILE = ("path", "file_path", "absolute_path", "filename", "file", "target_file")
_STATUS_NAMES: Mapping[StepStatus, str] = {
    "done": "completed",
    "doing": "in_progress",
    "open": "pending",
    "cancelled": "cancelled",
    "blocked": "blocked",
}
_MAX_DEPTH = 6  # of alternatives in a schema


def fit_items(tool: str, arguments: _Item, properties: Mapping[str, Any]) -> _Item:
    """The arguments, with the items of a list under the names that the tool's schema has."""
    parameter, fit = _FITTED.get(tool, ("", None))
    items = arguments.get(parameter)
    if fit is None or not isinstance(items, list):
        return arguments
    known = _item_properties(properties.get(parameter), 0)
    if not known:
        return arguments
    fitted = [fit(item, known) if isinstance(item, dict) else item for item in items]
    return {**arguments, parameter: fitted}


def _item_properties(schema: Any, depth: int) -> Mapping[str, Any]:
    """The properties of the objects in the list that a schema allows."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return {}
    if isinstance(found := schema.get("properties"), dict) and depth:
        return found
    alternatives = schema.get("anyOf")
    branches = [*(alternatives if isinstance(alternatives, list) else ()), schema.get("items")]
    return next((p for each in branches if (p := _item_properties(each, depth + 1))), {})


def _fit_step(item: _Item, known: Mapping[str, Any]) -> _Item:
    key = find_step_text(item)
    if "content" in known and key not in ("", *known):
        item = {("content" if k == key else k): v for k, v in item.items() if k != "content"}
    key = next((key for key in STATUS_KEYS if key in item), "")
    schema = known.get("status")
    allowed = schema.get("enum") if isinstance(schema, dict) else None
    if not key or not isinstance(allowed, list) or (key in known and key != "status"):
        return item
    meant = name_status(item[key])
    named = _STATUS_NAMES[meant] if meant else None
    return {**item, "status": named if named in allowed else item[key]}


def _fit_file(item: _Item, known: Mapping[str, Any]) -> _Item:
    if not {"path", "startLine", "endLine"}.issubset(known):
        return item
    plain = {key: snake_case(key) for key in item if key not in known}
    files = [key for key, name in plain.items() if name in _FILE]
    if len(files) == 1 and "path" not in item:
        item = {("path" if key == files[0] else key): value for key, value in item.items()}
    return _fit_lines(item, plain)


def _fit_lines(item: _Item, plain: Mapping[str, str]) -> _Item:
    """An item with its lines under our names, if it has others and they are clear."""
    window = {"offset", "limit"} & plain.keys()
    others = [key for key in item if names_lines(key)]
    if window and others:
        return item  # two ways to say it
    if not window and not any(key in plain for key in others):
        return item
    chosen = _parse_window(item) if window else parse_line_range(item)
    if chosen is None:
        return item
    lines = {"startLine": chosen.start, "endLine": chosen.end}
    rest = {key: value for key, value in item.items() if key not in (*window, *others)}
    return rest | {key: value for key, value in lines.items() if value is not None}


def _parse_window(item: _Item) -> LineRange | None:
    """The lines that an offset and a limit choose."""
    first = parse_line_range({"start": item.get("offset")})
    count = parse_line_range({"end": item.get("limit")})
    if first is None or count is None:
        return None
    end = None if count.end is None else (first.start or 1) + count.end - 1
    return LineRange(first.start, end)


_FITTED: Mapping[str, tuple[str, Callable[[_Item, Mapping[str, Any]], _Item]]] = {
    "todo": ("items", _fit_step),
    "read_file": ("absolute_path", _fit_file),
}
TOOLS_WITH_ITEMS = frozenset(_FITTED)
