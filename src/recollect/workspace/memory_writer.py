"""Adds facts to a memory file: one line each, under one heading.

`plan_fact` returns the change and its diff, so that the user can be asked; `save_fact` writes it.
A fact that is already there is not stored again. A fact is one line that cannot pass for a heading,
a fence or an import. Everything else in the file stays as it is, byte for byte, whatever its
encoding and line ends. The file is replaced as a whole, and only if nobody has changed it in
between; a link is followed only within its own folder.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recollect.errors import BadInput, CannotWrite
from recollect.workspace.safe_files import FileContent, read_inside, replace_file
from recollect.workspace.untrusted_text import (
    code_ranges,
    find_mentions,
    is_prose,
    one_line,
    split_lines,
    strip_invisible,
)

HEADING = "## Recollect Added Memories"
_BLANK = " \t\r\n"  # blank in Markdown; any other character is content
MAX_FACT = 2_000  # characters
MAX_READ = 1_000_000  # bytes
MAX_FILE = 100_000  # bytes: sessions read no memory file that is larger
OWN_FILE = "AGENTS.md"  # of the user, in the data directory
_MARKERS = re.compile(r"^(?:[-*+]+(?:\s+|$)|>\s*(?=[>#])|#{1,6}(?:\s+|$)|`{3,}|~{3,})+")


class PlannedMemory(NamedTuple):
    path: Path  # with links resolved
    before: bytes | None  # none: there is no file yet
    after: bytes
    difference: str  # empty: the fact is there already


class SavedFact(NamedTuple):
    path: Path
    line: str
    difference: str  # empty: the fact was there already


def own_memory_file(home: Path, names: Sequence[str]) -> Path:
    """The user's own memory file: a file of a name that is not in the settings is never read."""
    plain = [name for name in names if "/" not in name]
    return home / (OWN_FILE if OWN_FILE in plain else (*plain, OWN_FILE)[0])


def plan_fact(path: Path, fact: str) -> PlannedMemory:
    """What saving this fact would change; `BadInput` if it cannot be saved."""
    line = _fact_line(fact)
    real, before = _read_current(path)
    if before is not None and _has_fact(before, line):
        return PlannedMemory(real, before, before, "")
    after = with_fact(before or b"", line)
    if len(after) > MAX_FILE:
        raise BadInput(
            f"{one_line(str(path))} would have {len(after):,} bytes, and sessions read at most "
            f"{MAX_FILE:,}; remove facts that no longer matter"
        )
    return PlannedMemory(real, before, after, _diff(path.name, before or b"", after))


def save_fact(path: Path, fact: str) -> SavedFact:
    """Add a fact to a memory file, unless it is there already."""
    planned = plan_fact(path, fact)
    if planned.difference:
        write_fact(planned)
    return SavedFact(path, _fact_line(fact), planned.difference)


def plan_text(path: Path, text: str) -> PlannedMemory:
    """What putting this text in the place of the file would change; `BadInput` if it cannot be a
    memory file."""
    real, before = _read_current(path)
    after = strip_invisible(text).encode()
    if not after.strip():
        raise BadInput(f"there is no text for {one_line(str(path))}; nothing was written")
    if len(after) > MAX_FILE:
        raise BadInput(
            f"{one_line(str(path))} would have {len(after):,} bytes, and sessions read at most "
            f"{MAX_FILE:,}; ask for a shorter one"
        )
    longest = max(map(len, after.decode().splitlines()))
    if longest > MAX_FACT:  # the difference would not show all of it
        raise BadInput(f"a line has {longest:,} characters, the limit is {MAX_FACT:,}; break it")
    return PlannedMemory(real, before, after, _diff(path.name, before or b"", after))


def write_fact(planned: PlannedMemory, *, mode: int | None = None) -> None:
    """Write the planned change, if the file has not changed since; `mode` is a new file's."""
    if _read_current(planned.path) != (planned.path, planned.before):
        raise CannotWrite(str(planned.path), "another program has changed it in the meantime")
    replace_file(planned.path, planned.after, mode=mode)


def with_fact(data: bytes, line: str) -> bytes:
    """The file with one more line under the heading, which is appended if it is missing."""
    # latin-1 gives every byte a character of its own, so positions are those of the bytes
    text = data.decode("latin-1")
    end = "\r\n" if "\r\n" in text else "\n"
    added = f"- {line}".encode().decode("latin-1")
    place = _insert_position(text)
    if place is None:
        gap = end if text.endswith("\n") else end * 2
        start = f"{text}{gap}" if text.strip(_BLANK) else text
        return f"{start}{HEADING}{end}{end}{added}{end}".encode("latin-1")
    before, after = text[:place], text[place:]
    first = before.endswith(HEADING)
    return f"{before}{end}{end if first else ''}{added}{after or end}".encode("latin-1")


def _insert_position(text: str) -> int | None:
    """The end of the last nonblank line under the heading; none without a heading."""
    # an unclosed fence reaches to the end; it is ignored, or no heading would ever be found
    code = tuple(code for code in code_ranges(text + "\n\n") if code[1] < len(text) + 2)
    position, place = 0, None
    for line in split_lines(text):
        bare = line.strip(_BLANK)
        if is_prose(position, code):
            if bare == HEADING and place is None:
                place = position + line.index(HEADING) + len(HEADING)
            elif place is not None and line.startswith(("# ", "## ")):
                break
        if place is not None and bare and bare != HEADING:
            place = position + len(line.rstrip("\r\n"))
        position += len(line)
    return place


def _has_fact(data: bytes, line: str) -> bool:
    lines = split_lines(data.decode("utf-8", "replace"))
    return any(_plain_line(other) == line for other in lines if len(other) <= 2 * MAX_FACT)


def _plain_line(text: str) -> str:
    """A text on one line, without what Markdown or an import would take for more than words."""
    line = _MARKERS.sub("", " ".join(strip_invisible(text).split()))
    ticks = code_ranges(line)
    if sum(line[start:end].count("`") for start, end in ticks) != line.count("`"):
        line = line.replace("`", "'")  # a span left open would reach into the next fact
    for mention in reversed(find_mentions(line)):
        line = f"{line[: mention.start]}\\{line[mention.start :]}"
    return line


def _fact_line(fact: str) -> str:
    line = _plain_line(fact)
    if not line:
        raise BadInput("the fact is empty; say what to remember")
    if len(line) > MAX_FACT:
        raise BadInput(
            f"the fact has {len(line):,} characters, the limit is {MAX_FACT:,}; shorten it"
        )
    return line


def _read_current(path: Path) -> tuple[Path, bytes | None]:
    if not path.is_symlink() and not path.exists():
        return path, None
    found = read_inside(path, (path.parent,), MAX_READ)
    if not isinstance(found, FileContent):
        raise CannotWrite(str(path), found.why)
    return found.path, found.data


def _diff(name: str, before: bytes, after: bytes) -> str:
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    shown = one_line(name)
    lines = difflib.unified_diff(old, new, f"a/{shown}", f"b/{shown}", lineterm="", n=2)
    return "\n".join(one_line(line, MAX_FACT + 10) for line in lines)
