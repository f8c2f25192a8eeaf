"""A session's branches as a tree: the path to the head straight down, other branches beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recollect.cli.console import Styler
from recollect.cli.display_text import pad, truncate
from recollect.cli.entry_display import role_of, summarize
from recollect.entries import Entry


def tree_lines(
    path: Sequence[Entry],
    every: Sequence[Entry],
    short: dict[str, str],
    paint: Styler,
    width: int | None,
) -> Iterator[str]:
    """One line per entry. `every` may repeat `path`; a shared beginning is only in `path`."""
    entries = {entry.id: entry for entry in (*path, *every)}
    on_path = {entry.id for entry in path}
    children: dict[str | None, list[Entry]] = {}
    for entry in entries.values():
        parent = entry.parent if entry.parent in entries else None
        children.setdefault(parent, []).append(entry)
    digits = max(map(len, short.values()), default=0)
    head = path[-1].id if path else None
    for prefix, entry in _walk(children, on_path):
        start = f"{prefix}{'●' if entry.id in on_path else '○'} "
        role = role_of(entry.body)
        room = None if width is None else width - len(start) - digits - 12
        text = summarize(entry.body)
        text = text if room is None else truncate(text, max(10, room - 7))
        end = paint(" ← head", fg="yellow") if entry.id == head else ""
        id_cell = paint(pad(short[entry.id], digits), fg="yellow")
        yield f"{start}{id_cell}  {paint.dim(role.ljust(8))}  {text}{end}"


def _walk(
    children: dict[str | None, list[Entry]], on_path: set[str]
) -> Iterator[tuple[str, Entry]]:
    """Depth first, with the lines to draw before each entry; the branch to the head comes last."""
    waiting = _branches(children.get(None, []), on_path, "")
    while waiting:
        before, after, entry = waiting.pop()
        yield before, entry
        waiting += _branches(children.get(entry.id, []), on_path, after)


def _branches(entries: list[Entry], on_path: set[str], lines: str) -> list[tuple[str, str, Entry]]:
    """In reverse order, because `_walk` takes them from the end; the last continues the line."""
    if not entries:
        return []
    *beside, last = sorted(entries, key=lambda entry: entry.id in on_path)
    aside = [(lines + "├─", lines + "│ ", entry) for entry in reversed(beside)]
    return [(lines, lines, last), *aside]
