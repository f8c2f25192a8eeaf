"""Hostile lines by the rule that seems to allow them: what `hostile_lines/*.txt` say.

A block begins with `== sed -n *`: the rule that a user would write; `!= git push *` adds what the
user denies. A `⏎` stands for the end of a line, a `␍` for a carriage return; `~` marks a line that
has no effect in the trap sandbox as it is (no terminal, another version) and must be harmless only
if it is allowed; `+` one that `edit` or `free` is meant to run: plain writing, and code of the
project; `?` one that the judge lets mode `free` run and the sandbox holds: what code computes, and
which protected files a listing names for a command that writes, cannot be seen in the line.
`tests/execution/test_hostile_road.py` runs these in the real sandboxes, where they have no effect.
`touch` is the harm itself and denied everywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class RuledLine(NamedTuple):
    """A line that fires in the trap sandbox, and rules which must not let it."""

    line: str
    allow: str
    deny: tuple[str, ...] = ()
    fires: bool = True
    honest: bool = False  # the modes `edit` and `free` run it
    held: bool = False  # mode `free` runs it, and the sandbox holds it


def _read_line(text: str, allow: str, deny: tuple[str, ...]) -> RuledLine:
    marks = ""
    while text[:2] in ("~ ", "+ ", "? "):
        marks, text = marks + text[0], text[2:]
    plain = text.replace("⏎", "\n").replace("␍", "\r")
    return RuledLine(plain, allow, deny, "~" not in marks, marks.strip("~") != "", "?" in marks)


def _read_blocks(file: Path) -> list[RuledLine]:
    found: list[RuledLine] = []
    allow, deny = "", tuple[str, ...]()
    for text in filter(None, file.read_text(encoding="utf-8").split("\n")):
        if text.startswith("== "):
            allow, *denied = text.removeprefix("== ").split(" != ")
            deny = tuple(denied)
        else:
            found.append(_read_line(text, allow, deny))
    return found


RULED: tuple[RuledLine, ...] = tuple(
    ruled
    for file in sorted((Path(__file__).parent / "hostile_lines").glob("*.txt"))
    for ruled in _read_blocks(file)
)
