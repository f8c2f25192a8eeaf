"""Which sandbox commands run in, what it cannot do, and how to get a better one: for `doctor` and
`config`."""

from __future__ import annotations

from typing import Any

from recollect.cli.console import paint
from recollect.display.display_text import one_line
from recollect.execution.sandbox import Isolation


def isolation_lines(isolation: Isolation) -> list[str]:
    """One line for what is in force, one for what it cannot do, one for the remedy."""
    color = {"bubblewrap": "green", "landlock": "yellow", "none": "red"}[isolation.kind]
    lines = [f"sandbox  {paint(one_line(isolation.description), fg=color)}"]
    if isolation.limitations:
        lines.append(f"         {paint.dim(one_line('; '.join(isolation.limitations)))}")
    lines += [
        f"         {one_line(item)}" for item in (isolation.refusal, isolation.remedy) if item
    ]
    return lines


def isolation_document(isolation: Isolation) -> dict[str, Any]:
    return {
        "kind": isolation.kind,
        "description": isolation.description,
        "limitations": list(isolation.limitations),
        "remedy": isolation.refusal or isolation.remedy or None,
    }
