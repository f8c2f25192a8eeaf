"""What a user can type to allow the tool calls that a run was refused: one line per refusal.

The options of a line allow the call in the next run, its command in every run. The command adds to
the rules that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from recollect.display.display_text import one_line, truncate
from recollect.runtime.permission_policy import SHELL_TOOL, PermissionDenial
from recollect.toolkinds import parse_arguments

MAX_LINES = 5
_MAX_CALL, _MAX_REASON = 80, 300  # characters


def denial_notes(denials: Sequence[PermissionDenial]) -> Iterator[str]:
    lines = list(dict.fromkeys(map(_line, denials)))
    yield from lines[:MAX_LINES]
    if len(lines) > MAX_LINES:
        yield f"not allowed: {len(lines) - MAX_LINES:,} more; --output-format json lists them"


def _line(denial: PermissionDenial) -> str:
    options = [f"--mode {denial.mode}"] if denial.mode else []
    options += [f"--allow {quote(rule)}" for rule in denial.rules]
    if not options:
        reason = denial.reason.removeprefix("not allowed: ")
        return f"not allowed: {_call(denial)} · {truncate(one_line(reason), _MAX_REASON)}"
    return f"not allowed: {_call(denial)} · allow it with {' '.join(options)}{_for_good(denial)}"


def _for_good(denial: PermissionDenial) -> str:
    """Only for rules: the mode of one run is no habit to suggest."""
    if denial.mode or not denial.rules:
        return ""
    add = [f"recollect config --add permissions.allow {quote(rule)}" for rule in denial.rules]
    return f", or for good: {' && '.join(add)}"


def _call(denial: PermissionDenial) -> str:
    given = parse_arguments(denial.arguments) or {}
    if denial.tool == SHELL_TOOL:
        return truncate(one_line(str(given.get("command", ""))), _MAX_CALL)
    file = given.get("file_path") or given.get("absolute_path") or given.get("path") or ""
    return truncate(one_line(f"{denial.tool} {file}".rstrip()), _MAX_CALL)
