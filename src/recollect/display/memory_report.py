"""The memory files of a folder as rows, and how they differ from what a session was given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from recollect.display.display_text import align_table, one_line
from recollect.display.home_paths import abbreviate_home
from recollect.entries import Message, Text
from recollect.text import format_size
from recollect.workspace.memory_files import MemoryFile, MemoryFiles, memory_text, seen_memory


def memory_rows(found: MemoryFiles, width: int | None) -> list[list[str]]:
    """The head and one row for each file; none without files."""
    if not found.files:
        return []
    rows = [["FILE", "FROM", "SIZE"]]
    for file in found.files:
        size = format_size(len(file.text.encode("utf-8", "replace")))
        rows.append([one_line(abbreviate_home(file.path)), file.origin, size])
    return align_table(rows, width=width, stretch=0, numbers=(2,))


def memory_changes(
    files: Sequence[MemoryFile], messages: Sequence[Message]
) -> Iterator[tuple[str, str]]:
    """Each file that differs from what these messages have said of it, and how."""
    parts = (part for message in messages for part in message.parts)
    told = "\n".join(part.text for part in parts if isinstance(part, Text))
    seen = {path for path, digest in seen_memory(messages).items() if digest is not None}
    for file in files:
        if file.path not in seen:
            yield "new", file.path
        elif memory_text([file]) not in told:
            yield "changed", file.path
    for path in sorted(seen - {file.path for file in files}):
        # files of folders that a tool touched are not read at the start
        if not Path(path).exists():
            yield "removed", path
