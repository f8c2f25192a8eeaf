"""A bound on how deeply JSON from others may be nested, so that every reader can read it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from recollect.errors import BadInput

MAX_DEPTH = 100  # levels of nesting in foreign JSON that is kept


def refuse_deep(value: Any) -> Any:
    """The value itself, unless it is nested too deeply for other readers."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = next_level(level)
        if not level:
            return value
    raise BadInput(f"JSON nested deeper than {MAX_DEPTH} levels is refused; flatten it")


def next_level(values: Iterable[Any]) -> list[Any]:
    """All that the objects and lists among these JSON values hold."""
    nested = (
        v.values() if isinstance(v, dict) else v for v in values if isinstance(v, dict | list)
    )
    return list(chain.from_iterable(nested))
