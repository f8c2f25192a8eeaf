"""The lines that a call adds to a file: by its arguments, or by a shell command that writes one.

A hint for snapshots, not a judgement of safety. Lines that say nothing, such as a bracket alone,
are left out. Linear, and bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from recollect.text import clean

_MAX_NEW_TEXT, _MAX_COMMAND = 100_000, 8_000  # characters
_WORD = re.compile(r"[^\W_]\w{2,}")
_FILE = r"([\w./~@+-]{1,300}\.[A-Za-z]\w{0,8})(?![\w/])"
_WRITTEN = re.compile(rf"(?:(?:^|\s)>{{1,2}}\s{{0,4}}|\btee (?:-a )?){_FILE}")
_QUOTED = re.compile(r"'[^']*+'|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"", re.S)
_IN_PLACE = re.compile(rf"^\s*sed -i.*\s{_FILE}\s*$")
_APART = re.compile(r"&&|\|\||[;|\n]")
_OLD = ("old_string", "old_str", "oldString", "oldText", "old_text", "search")
_NEW = (
    *("new_string", "new_str", "newString", "newText", "new_text", "replace"),
    *("content", "file_text", "text", "new_source"),
)


def find_added(value: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines that the arguments of an edit add to a file."""
    edits = value.get("edits")
    changes = [value, *(edits if isinstance(edits, list) else ())]
    found: list[str] = []
    for change in (change for change in changes if isinstance(change, dict)):
        old, new = (
            next((t for key in keys if isinstance(t := change.get(key), str)), "")[:_MAX_NEW_TEXT]
            for keys in (_OLD, _NEW)
        )
        found += _new_lines(clean(old), clean(new))
    patches = (value.get(key) for key in ("patch", "input", "diff"))
    for patch in (patch for patch in patches if isinstance(patch, str)):
        lines = clean(patch[:_MAX_NEW_TEXT]).split("\n")
        found += _new_lines("", "\n".join(line[1:] for line in lines if line[:1] == "+"))
    return tuple(found)


def find_written(command: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The files that a command writes, with the lines of its here-document."""
    text = command[:_MAX_NEW_TEXT]
    _, here, document = text.partition("<<")
    lines = _new_lines("", clean(document)) if here else ()
    bare = _QUOTED.sub("''", text.partition("\n")[0] if here else text)[:_MAX_COMMAND]
    pieces = _APART.split(bare)
    in_place = (found[1] for piece in pieces if (found := _IN_PLACE.match(piece[:1_000])))
    for path in (*_WRITTEN.findall(bare), *in_place):
        yield path, lines


def _new_lines(old: str, new: str) -> tuple[str, ...]:
    """The lines of a new text that the old one has not, without those that say nothing."""
    before = {line.strip() for line in old.split("\n")}
    lines = (line.strip() for line in new.split("\n"))
    return tuple(line for line in lines if line not in before and _WORD.search(line))
