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
JsonPath: TypeAlias = list[str | int]
_LONGEST_PATH = 120
_MOST_WORK = 10_000_000


def json_equal(a: Any, b: Any) -> bool:
    """Equal as JSON."""
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
    return list(_steps(a, b, []))


def _steps(a: Any, b: Any, path: JsonPath) -> Iterator[list[Any]]:
    if isinstance(a, dict) and isinstance(b, dict):
        yield from ([[*path, key]] for key in a if key not in b)
        for key, item in b.items():
            if key in a:
                yield from _steps(a[key], item, [*path, key])
            else:
                yield [[*path, key], item]
    elif isinstance(a, list) and isinstance(b, list):
        yield from _list_steps(a, b, path)
    elif not json_equal(a, b):
        yield [path, b]


def _list_steps(a: list[Any], b: list[Any], path: JsonPath) -> Iterator[list[Any]]:
    if len(a) == len(b):
        for position, (old, new) in enumerate(zip(a, b, strict=True)):
            yield from _steps(old, new, [*path, position])
        return
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and json_equal(a[start], b[start]):
        start += 1
    end = 0
    while end < shorter - start and json_equal(a[-1 - end], b[-1 - end]):
        end += 1
    yield [path, start, len(a) - end - start, b[start : len(b) - end]]


def apply_patch(value: Any, patch: object) -> Any:
    """The value with these changes. Steps that do not fit, and paths and lists so long that no
    `diff` of ours made them, are passed over."""
    if not isinstance(patch, list) or not patch:
        return value
    holder = [_copied(value)]
    work = 0
    for step in patch:
        if isinstance(step, list) and step and isinstance(step[0], list):
            work += _change(holder, [0, *step[0][: _LONGEST_PATH + 1]], step[1:])
        if work > _MOST_WORK:
            break
    return holder[0]


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _change(value: Any, path: JsonPath, change: list[Any]) -> int:
    """Makes one change in place; how many items of a list had to move for it."""
    if len(path) > _LONGEST_PATH:
        return 0
    for key in path[:-1]:
        if not _holds(value, key):
            return 0
        value = value[key]
    last = path[-1]
    new_key = isinstance(value, dict) and isinstance(last, str)
    if len(change) == 1 and (new_key or _holds(value, last)):
        value[last] = _copied(change[0])
    elif not change and new_key:
        value.pop(last, None)
    elif len(change) == 3 and _holds(value, last):
        return _splice(value[last], *change)
    return 0


def _holds(value: Any, key: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(key, str) and key in value
    return isinstance(value, list) and type(key) is int and 0 <= key < len(value)


def _splice(value: Any, start: Any, count: Any, items: Any) -> int:
    fits = type(start) is int and type(count) is int and start >= 0 and count >= 0
    if not (fits and isinstance(value, list) and isinstance(items, list)):
        return 0
    value[start : start + count] = _copied(items)
    return len(value)
