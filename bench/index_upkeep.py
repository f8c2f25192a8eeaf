"""What the background indexing costs an append while it runs."""

from __future__ import annotations

from bench.measure import Result, Setting, median, once, progress
from bench.report import Row, Table, seconds

_PAUSE = 0.002


def upkeep(setting: Setting) -> Table:
    n, rows = setting.scale.paced, []
    for where, parent in (("on disk", setting.disk), ("on tmpfs", setting.memory)):
        found: dict[bool, list[Result]] = {True: [], False: []}
        for number in range(setting.scale.rounds):
            for index in (False, True):
                progress(f"{n:,} paced appends {where}, index={index}, round {number + 1}")
                found[index].append(once("ours", "paced", parent, n=n, pause=_PAUSE, index=index))
        for key, target in (("mean", 1.25), ("median", None), ("p99", None)):
            with_index, without = median(found[True], key), median(found[False], key)
            rows.append(
                Row(f"{key} wait for an append {where}", with_index / without, target,
                    seconds(without), rounds=found if key == "mean" else None)
            )  # fmt: skip
        cpu = median(found[True], "cpu") / median(found[False], "cpu")
        shown = seconds(median(found[False], "cpu") / n)
        rows.append(Row(f"CPU of the whole process {where}", cpu, None, shown))
    note = (
        f"{n:,} single appends with {_PAUSE * 1e3:g} ms between them, so that indexing runs in "
        "between and beside them; 1 is the same with the background task kept from starting. "
        "Waiting is wall time from call to acknowledgement. CPU counts the indexing itself and "
        "the loop's own pauses."
    )
    return Table("upkeep", "What indexing costs an append", note, tuple(rows))
