"""Lays out a table within a width: columns side by side, or its rows as lists where they would be
too narrow to read."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style

from recollect.terminal.styled_lines import Line, Look, Span, line_width, prefix_lines, wrap_spans

_LEAST = 6  # columns of a cell that is wrapped
_WIDE = 100_000  # so that nothing is wrapped


def layout_table(
    rows: list[list[list[Span]]], width: int, look: Look, to_right: Sequence[bool] = ()
) -> list[Line]:
    """`to_right` are the columns whose cells end at the same place, such as numbers."""
    if not rows or not rows[0]:
        return []
    count = len(rows[0])
    rows = [[*row, *([[]] * count)][:count] for row in rows]
    rows[0] = [[(text, style + Style(bold=True)) for text, style in cell] for cell in rows[0]]
    natural = [
        max((line_width(line) for row in rows for line in wrap_spans(row[n], _WIDE)), default=0)
        for n in range(count)
    ]
    room = width - 3 * (count - 1)
    if sum(natural) > room and room < _LEAST * count:
        return _as_lists(rows, width, look)
    widths = _shrink(natural, room)
    bar, dash = look.mark("│"), look.mark("─")
    between = Segment(f" {bar} ", look.palette.dim)
    found: list[Line] = []
    for number, row in enumerate(rows):
        found += _row(row, widths, between, to_right)
        if not number:
            rule = f"{dash}{look.mark('┼')}{dash}".join(dash * each for each in widths)
            found.append([Segment(rule, look.palette.dim)])
    return found


def _shrink(natural: list[int], room: int) -> list[int]:
    """The widths of columns that together fit: the widest give first."""
    widths = [max(1, each) for each in natural]
    while (excess := sum(widths) - room) > 0:
        widest = max(widths)
        if widest <= _LEAST:
            break
        tops = [n for n, each in enumerate(widths) if each == widest]
        below = max([each for each in widths if each < widest], default=_LEAST)
        step = max(1, min(widest - max(below, _LEAST), -(-excess // len(tops))))
        for n in tops:
            widths[n] -= step
    return widths


def _row(
    row: list[list[Span]], widths: list[int], between: Segment, to_right: Sequence[bool]
) -> list[Line]:
    cells = [wrap_spans(cell, width) or [[]] for cell, width in zip(row, widths, strict=True)]
    found: list[Line] = []
    for number in range(max(map(len, cells))):
        line: Line = []
        for n, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            part = cell[number] if number < len(cell) else []
            if n:
                line.append(between)
            blank = Segment(" " * max(0, width - line_width(part)))
            if n < len(to_right) and to_right[n]:
                line += [blank, *part]
            else:
                line += [*part, blank] if n < len(cells) - 1 else part
        found.append(line)
    return found


def _as_lists(rows: list[list[list[Span]]], width: int, look: Look) -> list[Line]:
    """Each row as lines `name: value`."""
    names, found = rows[0], list[Line]()
    for row in rows[1:]:
        if found:
            found.append([])
        for name, cell in zip(names, row, strict=True):
            lines = wrap_spans([*name, (": ", look.palette.dim), *cell], width - 2)
            found += prefix_lines(lines, "", look.palette.dim, "  ")
    return found or [line for name in names for line in wrap_spans(name, width)]
