"""Which sandbox commands run in, what it cannot do, and how to get a better one: for `doctor` and
`config`."""

from __future__ import annotations

from typing import Any

from recollect.cli.console import paint
from recollect.display.isolation_lines import isolation_texts
from recollect.execution.sandbox import Isolation


def isolation_lines(isolation: Isolation) -> list[str]:
    """One line for what is in force, one for what it cannot do, one for the remedy."""
    color = {"bubblewrap": "green", "landlock": "yellow", "none": "red"}[isolation.kind]
    first, *rest = isolation_texts(isolation)
    if isolation.limitations:
        rest[0] = paint.dim(rest[0])
    return [f"sandbox  {paint(first, fg=color)}", *(f"         {line}" for line in rest)]


def isolation_document(isolation: Isolation) -> dict[str, Any]:
    return {
        "kind": isolation.kind,
        "description": isolation.description,
        "limitations": list(isolation.limitations),
        "remedy": isolation.refusal or isolation.remedy or None,
    }
