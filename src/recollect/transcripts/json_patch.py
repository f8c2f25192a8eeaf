"""Patches that turn one JSON value into another.

`apply_patch(a, make_patch(a, b))` equals `b` for any two JSON values. 1, 1.0 and true are three
different values; the order of an object's keys does not count. A patch is JSON itself, a list of
steps:
    [path]                           remove the value there
    [path, value]                    put the value there
    [path, start, count, items]      in the list there, replace `count` items by these
A path is a list of keys and positions. Neither function changes its arguments, and `apply_patch`
skips steps that do not fit, because patches come out of files.
"""

from __future__ import annotations

from typing import Any, TypeAlias

JsonPath: TypeAlias = list[str | int]
_LONGEST_PATH = 120
_COMPARABLE = frozenset({str, int})  # 0.0 and -0.0 are not the same, and objects take longer
MOVE_LIMIT = 10_000_000  # list items that one patch may move; a hostile one asks for more


def json_equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(json_equal(item, b[key]) for key, item in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(json_equal, a, b))
    if isinstance(a, float):
        return repr(a) == repr(b)  # 0.0 and -0.0 are written differently
    return bool(a == b)


def make_patch(a: Any, b: Any) -> list[Any]:
    steps: list[Any] = []
    _add_steps(steps, a, b, [])
    return steps


def _add_steps(steps: list[Any], a: Any, b: Any, path: JsonPath) -> None:
    if isinstance(a, dict) and isinstance(b, dict):
        if not a.keys() <= b.keys():
            steps += ([[*path, key]] for key in a if key not in b)
        for key, item in b.items():
            if key not in a:
                steps.append([[*path, key], item])
                continue
            old, kind = a[key], type(item)
            if kind is not type(old) or kind not in _COMPARABLE or old != item:
                _add_steps(steps, old, item, [*path, key])
    elif isinstance(a, list) and isinstance(b, list):
        _add_list_steps(steps, a, b, path)
    elif not json_equal(a, b):
        steps.append([path, b])


def _add_list_steps(steps: list[Any], a: list[Any], b: list[Any], path: JsonPath) -> None:
    if len(a) == len(b):
        for position, (old, new) in enumerate(zip(a, b, strict=True)):
            if old is not new:
                _add_steps(steps, old, new, [*path, position])
        return
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and json_equal(a[start], b[start]):
        start += 1
    end = 0
    while end < shorter - start and json_equal(a[-1 - end], b[-1 - end]):
        end += 1
    steps.append([path, start, len(a) - end - start, b[start : len(b) - end]])


def apply_patch(value: Any, patch: object) -> Any:
    """The patched value, without the steps that do not fit and those beyond our limits."""
    if not isinstance(patch, list) or not patch:
        return value
    holder = [_copy(value)]
    moved = 0
    for step in patch:
        match step:
            case [[*path], *change] if len(path) < _LONGEST_PATH:
                moved += _apply_step(holder, [0, *path], change)
        if moved > MOVE_LIMIT:
            break
    return holder[0]


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value


def _apply_step(value: Any, path: JsonPath, step: list[Any]) -> int:
    """Change the value in place; the number of list items that moved."""
    *above, last = path
    for key in above:
        if not _holds(value, key):
            return 0
        value = value[key]
    in_object = isinstance(value, dict) and isinstance(last, str)
    if len(step) == 1 and (in_object or _holds(value, last)):
        value[last] = _copy(step[0])
    elif not step and in_object:
        value.pop(last, None)
    elif len(step) == 3 and _holds(value, last):
        return _splice(value[last], *step)
    return 0


def _holds(value: Any, key: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(key, str) and key in value
    return isinstance(value, list) and type(key) is int and 0 <= key < len(value)


def _splice(value: Any, start: Any, count: Any, items: Any) -> int:
    fits = type(start) is int and type(count) is int and start >= 0 and count >= 0
    if not (fits and isinstance(value, list) and isinstance(items, list)):
        return 0
    value[start : start + count] = _copy(items)
    return len(value)
