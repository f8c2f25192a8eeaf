"""A piece of the conversation as it is shown: a value, with texts as they were stored, bounded.

Whoever shows a block sanitizes it. What is longer than anybody scrolls through is cut here, so that
a session takes little memory; `omitted` says how much is only in the log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from recollect.toolkinds import parse_arguments

BlockKind: TypeAlias = Literal["user", "reply", "thought", "tool", "notice"]
BlockState: TypeAlias = Literal["done", "running", "failed", "interrupted"]
Level: TypeAlias = Literal["info", "warning", "error"]

MAX_TEXT = 200_000  # characters of a message
MAX_OUTPUT = 24_000  # of a result: its beginning and its end
MAX_ARGUMENT = 12_000  # of one argument of a call
OWN_COMMAND = "own command"  # the name of a prompt's block that ran a command of the user's own
_TAIL = 8_000  # characters of a cut output that are its end


class Block(msgspec.Struct, frozen=True, gc=False):
    key: str  # tells it from all others; the same for as long as it is shown
    kind: BlockKind
    text: str  # of a call: its arguments, as JSON
    entry: str = ""  # the entry that it is of; empty while that is not stored
    name: str = ""  # of a call: the tool; of some notices and prompts: what they are about
    output: str = ""  # of a call: its result; of a prompt: its files, or what its command wrote
    state: BlockState = "done"
    level: Level = "info"  # of a notice
    seconds: float | None = None  # of a call: how long it took
    call_id: str = ""
    omitted: int = 0  # characters that only the log has
    result: str = ""  # of a call: the entry of its result
    elided: tuple[tuple[str, int], ...] = ()  # of a notice: entries left out, by rule

    @property
    def foldable(self) -> bool:
        if self.kind == "user":
            return bool(self.output) or is_long(self.text)
        return self.kind in ("tool", "thought")


def is_long(text: str) -> bool:
    """Whether a prompt is folded, such as one with a pasted file."""
    return len(text) > 4_000 or text.count("\n") > 30


def bound_text(text: str) -> tuple[str, int]:
    """What is kept of a message, and how many characters are not."""
    return text[:MAX_TEXT], max(0, len(text) - MAX_TEXT)


def bound_output(text: str) -> tuple[str, int]:
    """The beginning and the end of a result: an exit code stands at the end."""
    omitted = len(text) - MAX_OUTPUT
    if omitted <= 0:
        return text, 0
    head, tail = text[: MAX_OUTPUT - _TAIL], text[-_TAIL:]
    return f"{head}\n[… {omitted:,} characters …]\n{tail}", omitted


def bound_arguments(text: str) -> tuple[str, int]:
    """The arguments of a call with long ones cut, still as JSON; broken ones stay as they are."""
    if len(text) <= MAX_ARGUMENT:
        return text, 0
    given = parse_arguments(text)
    if given is None:
        return text[:MAX_ARGUMENT], len(text) - MAX_ARGUMENT
    cut = _cut_values(given)
    kept = json.dumps(cut, ensure_ascii=False)
    if len(kept) > 8 * MAX_ARGUMENT:  # many values
        return kept[:MAX_ARGUMENT], len(text) - MAX_ARGUMENT
    return kept, max(0, len(text) - len(kept))


def _cut_values(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value[:MAX_ARGUMENT] if isinstance(value, str) else value
        for name, value in given.items()
    }
