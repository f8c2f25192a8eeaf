"""Several processes write to one file at once, each to a session of its own."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bench.measure import Running, Setting, fresh, progress, run
from bench.report import Row, Table

_HEAD_START = 3.0  # seconds for all of them to start and open the file


def processes(setting: Setting) -> Table:
    writers, n = setting.scale.writers
    rows = []
    for where, parent in (("on disk", setting.disk), ("on tmpfs", setting.memory)):
        rates: dict[str, list[float]] = {"raw": [], "ours": []}
        for number in range(setting.scale.rounds):
            for name, found in rates.items():
                progress(f"{writers} processes {where} round {number + 1}: {name}")
                with fresh(parent) as place:
                    found.append(_rate(name, place, writers, n))
        raw, mine = (statistics.median(rates[name]) for name in ("raw", "ours"))
        rows.append(Row(f"time {where}", raw / mine, None, f"{raw:,.0f}/s", rounds=rates))
        rows.append(Row(f"appends {where}", mine, unit="/s"))
    note = (
        "1 is raw: BEGIN IMMEDIATE, INSERT, COMMIT with SQLite's own waiting. From the first start "
        "to the last acknowledgement; all entries were counted afterwards."
    )
    return Table("processes", f"{writers} processes × {n} appends, one file", note, tuple(rows))


def _rate(name: str, place: Path, writers: int, n: int) -> float:
    if name == "ours":
        run("ours", "create_sessions", place, n=writers)
    else:
        run("raw", "fill", place, n=0)
    start_at = time.time() + _HEAD_START
    running = [
        Running(name, "write_with_others", place, number=i, n=n, start_at=start_at)
        for i in range(writers)
    ]
    found = [each.result() for each in running]
    stored = run(name, "count", place)["count"]
    if stored != writers * n:
        raise AssertionError(f"{name} stored {stored} of {writers * n} appends")
    took = max(f["ended"] for f in found) - min(f["began"] for f in found)
    return float(writers * n / took)
