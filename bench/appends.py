"""Appends: one at a time, in batches, early and late in a session's life."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench import peers
from bench.measure import (
    Failed,
    Result,
    Setting,
    fresh,
    median,
    progress,
    ratio,
    run,
    side_by_side,
    syncs_per_item,
)
from bench.report import Row, Table, seconds

Results = dict[str, list[Result]]


def contenders(setting: Setting, task: str, count: int) -> list[str]:
    able = [name for name in setting.peers if peers.can(name, task, count)]
    return ["ours", "bare", "sqlite3", *able]


def others(setting: Setting, results: Results, key: str) -> dict[str, float]:
    """The ratios of everybody else; a failure becomes a note."""
    found = {}
    for name, rounds in results.items():
        for failed in [r["failed"] for r in rounds if "failed" in r][:1]:
            setting.notes.append(f"{name} failed: {failed.splitlines()[-1]}")
        value = ratio(rounds, key)
        if name != "ours" and value is not None:
            found[name] = value
    return found


def singles(setting: Setting) -> Table:
    rows: list[Row] = []
    for n in setting.scale.singles:
        names = contenders(setting, "append", n)
        found = side_by_side(names, "append", setting.memory, rounds=setting.scale.rounds, n=n)
        for name, results in found.items():
            if "bytes" in results[0]:
                setting.sizes[name, n] = results[0]["bytes"]
        rows += _pair(setting, found, n, f"CPU on tmpfs, {n:,} appends", "cpu", 5.0)
    rows.append(_syncs(setting))
    for n in setting.scale.on_disk:
        names = contenders(setting, "append", n) if n == setting.scale.on_disk[0] else ["ours"]
        found = side_by_side(names, "append", setting.disk, rounds=setting.scale.rounds, n=n)
        rows += _pair(setting, found, n, f"wall on disk, {n:,} appends", "wall", 1.4)
    note = (
        "Acknowledged: until the last append returned, on disk and synced; what the background "
        "task indexed meanwhile counts. Everything: indexed and closed as well. Raw before and "
        f"after each contender, median of {setting.scale.rounds} rounds (a peer that takes "
        "over 5 s runs once). The figure of raw is for one append: json.dumps and INSERT through "
        "apsw. bare: the same with text serialised beforehand. sqlite3: Python's own module."
    )
    return Table("singles", "Durable single appends", note, tuple(rows))


def _pair(
    setting: Setting, found: Results, n: int, what: str, key: str, target: float
) -> list[Row]:
    whole = f"{key}_all"
    mine = found["ours"]
    return [
        Row(
            f"{what}, {title}",
            ratio(mine, measured),
            limit,
            seconds(median(mine, measured, of_raw=True) / n),
            others(setting, found, measured),
            rounds=found,
        )
        for title, measured, limit in (
            ("acknowledged", key, None),
            ("everything", whole, target),
        )
    ]


def _syncs(setting: Setting) -> Row:
    counts: dict[str, float] = {}
    low, high = 100, min(1_100, setting.scale.singles[-1])
    for name in ("raw", *contenders(setting, "append", 1_000)):
        progress(f"fsyncs of {name}")
        try:
            found = syncs_per_item(name, "append", setting.disk, low, high)
        except Failed as failure:
            setting.notes.append(f"fsyncs of {name}: {str(failure).splitlines()[-1]}")
            continue
        if found is None:
            setting.notes.append("fsyncs were not counted: strace is not installed")
            return Row("fsyncs for each append", None, unit="")
        counts[name] = found
    raw, mine = counts.pop("raw", 0.0), counts.pop("ours", None)
    # checkpoints sync too, once in hundreds of appends: one and a little is one
    return Row("fsyncs for each append", mine, 1.05, f"{raw:.2f}", counts, unit="")


def batches(setting: Setting) -> Table:
    scale = setting.scale
    names = contenders(setting, "batch", scale.batch * scale.batches)
    found = side_by_side(
        names,
        "batch",
        setting.memory,
        rounds=scale.rounds,
        batches=scale.batches,
        size=scale.batch,
    )
    what = f"CPU on tmpfs, {scale.batches} × {scale.batch:,}"
    rows = _pair(setting, found, scale.batches, what, "cpu", 4.0)
    note = (
        "Raw: json.dumps and executemany, one transaction per batch. The figure of raw is for one "
        "batch. Ours hashes and compresses every entry; everything includes the index."
    )
    return Table("batches", f"Batches of {scale.batch:,}", note, tuple(rows))


def growth(setting: Setting) -> Table:
    late, rounds = setting.scale.late, setting.scale.rounds
    figures: dict[str, dict[str, float]] = {}
    with fresh(setting.memory) as place:
        for name in ("raw", "ours"):
            run(name, "fill", place, n=late)
        for name in ("raw", "ours"):
            early, later = [], []
            for number in range(rounds):
                progress(f"growth round {number + 1}/{rounds}: {name}")
                with fresh(setting.memory) as empty:
                    early.append(run(name, "append", empty, n=1_000))
                later.append(_appended_to_copy(setting, name, place, late))
            figures[name] = {
                key: median(later, key) / median(early, key) for key in ("cpu", "cpu_all")
            }
    rows = [
        Row(f"appends {late + 1:,}–{late + 1_000:,} : 1–1,000, CPU, {title}", figures["ours"][key],
            1.3, f"raw: {figures['raw'][key]:.2f}×", rounds=figures)
        for title, key in (("acknowledged", "cpu"), ("everything", "cpu_all"))
    ]  # fmt: skip
    note = (
        "Here ours and raw are each compared with themselves; flat is read as at most 1.3×. "
        "The long store has its dictionary and compresses every append; the young one has none."
    )
    return Table("growth", "Flat as the session grows", note, tuple(rows))


def _appended_to_copy(setting: Setting, name: str, place: Path, late: int) -> Result:
    with fresh(setting.memory) as copy:
        for file in place.iterdir():
            shutil.copy(file, copy)
        return run(name, "append", copy, n=1_000, start=late)
