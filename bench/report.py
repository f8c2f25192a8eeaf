"""Tables of ratios, for a terminal, for Markdown and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    what: str
    ours: float | None
    target: float | None = None  # at most this, or `at_least`
    raw: str = ""  # what the ratio is to, as measured
    peers: dict[str, float] = field(default_factory=dict)
    unit: str = "×"
    rounds: Any = None  # every single result, for the JSON
    at_least: bool = False

    @property
    def reached(self) -> bool | None:
        if self.target is None or self.ours is None:
            return None
        return self.ours >= self.target if self.at_least else self.ours <= self.target


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    note: str
    rows: tuple[Row, ...]

    def as_json(self) -> dict[str, Any]:
        rows = [{**asdict(row), "reached": row.reached} for row in self.rows]
        return {"name": self.name, "title": self.title, "note": self.note, "rows": rows}


HEADINGS = ("what", "ours", "target", "raw = 1", "peers")


def figure(value: float | None, unit: str = "×") -> str:
    if value is None:
        return "–"
    if 0 < abs(value) < 0.01:
        return f"{value:.1g}{unit}" if abs(value) >= 0.0001 else f"{value:.0e}{unit}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}{unit}"


def seconds(value: float) -> str:
    if value < 0.001:
        return f"{value * 1e6:.0f} µs"
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.2f} s"


def _cells(row: Row) -> tuple[str, ...]:
    mark = {None: "", True: " ✓", False: " ✗"}[row.reached]
    sign = "≥" if row.at_least else "≤"
    target = "" if row.target is None else f"{sign} {row.target:g}{row.unit}"
    peers = ", ".join(f"{name} {figure(value, row.unit)}" for name, value in row.peers.items())
    return row.what, figure(row.ours, row.unit) + mark, target, row.raw, peers


def _lines(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def as_text(tables: Sequence[Table]) -> str:
    blocks = []
    for table in tables:
        rows = [HEADINGS, *map(_cells, table.rows)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
        blocks.append("\n".join([table.title, *_lines(rows, widths), f"({table.note})"]))
    return "\n\n".join(blocks)


def as_markdown(
    tables: Sequence[Table], machine: dict[str, Any], notes: Sequence[str], command: str
) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    head = (
        f"Measured with `{command}` on {machine['date']}: {machine['cpu']}, "
        f"{machine['cores']} cores, {machine['system']}, disk {machine['disk']}, "
        f"Python {machine['python']}, SQLite {machine['sqlite']}; {versions}. "
        f"Load before: {machine['load']}, after: {machine['load_after']}."
    )
    blocks = [head]
    for table in tables:
        rows = ["| " + " | ".join(_cells(row)) + " |" for row in table.rows]
        above = ["| " + " | ".join(HEADINGS) + " |", "| --- | --: | --: | --: | --- |"]
        blocks.append("\n".join([f"### {table.title}", "", *above, *rows, "", table.note]))
    if notes:
        blocks.append("\n".join(["### Not measured, and remarks", "", *(f"- {n}" for n in notes)]))
    return "\n\n".join(blocks) + "\n"
