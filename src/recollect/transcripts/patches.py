"""What must be changed in one JSON value to make another of it.

`apply(a, diff(a, b))` equals `b` for any two JSON values; 1, 1.0 and true are three different
values, the order of an object's keys is not part of it. A patch is itself JSON, a list of steps:
    [path]                           take away what is there
    [path, value]                    put the value there
    [path, start, count, items]      in the list there, replace `count` items by these
A path is a list of keys and positions. Neither function changes what it is given, and `apply`
leaves out a step that does not fit, because patches come out of files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = list[str | int]


def same(a: Any, b: Any) -> bool:
    """Equal as JSON."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(item, b[key]) for key, item in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return repr(a) == repr(b)  # 0.0 and -0.0 are written differently
    return bool(a == b)


def diff(a: Any, b: Any) -> list[Any]:
    return list(_steps(a, b, []))


def _steps(a: Any, b: Any, path: Path) -> Iterator[list[Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        yield from ([[*path, key]] for key in a if key not in b)
        for key, item in b.items():
            if key in a:
                yield from _steps(a[key], item, [*path, key])
            else:
                yield [[*path, key], item]
    elif isinstance(a, list) and isinstance(b, list):
        yield from _list_steps(a, b, path)
    elif not same(a, b):
        yield [path, b]


def _list_steps(a: list[Any], b: list[Any], path: Path) -> Iterator[list[Any]]:
    if len(a) == len(b):
        for position, (old, new) in enumerate(zip(a, b, strict=True)):
            yield from _steps(old, new, [*path, position])
        return
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and same(a[start], b[start]):
        start += 1
    end = 0
    while end < shorter - start and same(a[-1 - end], b[-1 - end]):
        end += 1
    yield [path, start, len(a) - end - start, b[start : len(b) - end]]


def apply(value: Any, patch: object) -> Any:
    if not isinstance(patch, list):
        return value
    for step in patch:
        if isinstance(step, list) and step and isinstance(step[0], list):
            value = _apply_at(value, step[0], step[1:])
    return value


def _apply_at(value: Any, path: Path, change: list[Any]) -> Any:
    if len(path) > 1:
        key = path[0]
        if not _holds(value, key):
            return value
        return _with(value, key, _apply_at(value[key], path[1:], change))
    if len(change) == 3:
        if not path:
            return _spliced(value, change)
        return (
            _with(value, path[0], _spliced(value[path[0]], change))
            if _holds(value, path[0])
            else value
        )
    if not path:
        return change[0] if change else value
    if isinstance(value, dict) and isinstance(path[0], str):
        rest = {key: item for key, item in value.items() if key != path[0]}
        return rest | {path[0]: change[0]} if change else rest
    return _with(value, path[0], change[0]) if change and _holds(value, path[0]) else value


def _holds(value: Any, key: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(key, str) and key in value
    return isinstance(value, list) and type(key) is int and 0 <= key < len(value)


def _with(value: Any, key: Any, item: Any) -> Any:
    copy = value.copy()
    copy[key] = item
    return copy


def _spliced(value: Any, change: list[Any]) -> Any:
    start, count, items = change
    fits = type(start) is int and type(count) is int and start >= 0 and count >= 0
    if not (fits and isinstance(value, list) and isinstance(items, list)):
        return value
    return value[:start] + items + value[start + count :]
