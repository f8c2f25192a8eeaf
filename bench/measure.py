"""Runs contenders in processes of their own, side by side, and keeps their ratios.

Raw SQLite runs before and after every other contender, and each ratio is to the mean of those two:
what the machine does at the moment hits both. The median of the rounds is reported, all are kept.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
_SLOW = 5.0  # seconds; a peer that takes longer, or failed, runs once: its ratio is clear enough
_SYNC = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(?:fsync|fdatasync)$", re.M)
Result = dict[str, Any]


class Failed(Exception):
    """A contender's process ended badly; the message is the end of what it said."""


@dataclass(frozen=True)
class Scale:
    """How much is measured. `quick` is for trying the harness, not for numbers."""

    singles: tuple[int, ...] = (1_000, 10_000)
    on_disk: tuple[int, ...] = (1_000, 10_000)
    batch: int = 1_000
    batches: int = 10
    load: tuple[int, ...] = (1_000, 10_000)
    windows: tuple[int, ...] = (1_000, 10_000, 100_000)
    late: int = 99_000
    sessions: int = 10_000
    search: int = 100_000
    paced: int = 6_000  # long enough for the index to run several times
    writers: tuple[int, int] = (8, 500)
    starts: int = 20
    views: tuple[int, int] = (100, 10_000)
    resumed: tuple[int, int] = (1_000, 100_000)
    streams: tuple[int, int] = (1_000_000, 10_000_000)  # bytes
    rounds: int = 3


QUICK = Scale(
    singles=(200, 1_000),
    on_disk=(200,),
    batches=2,
    load=(1_000,),
    windows=(1_000, 2_000, 4_000),
    late=4_000,
    sessions=300,
    search=4_000,
    paced=300,
    writers=(4, 50),
    starts=5,
    views=(100, 1_000),
    resumed=(1_000, 5_000),
    streams=(100_000, 1_000_000),
    rounds=1,
)


@dataclass(frozen=True)
class Setting:
    """Where and how much: handed to every benchmark."""

    scale: Scale
    memory: Path  # tmpfs, where a sync costs nothing and CPU time is all there is
    disk: Path
    peers: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)  # what was skipped, and why
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)  # bytes, from the appends
    with_peers: bool = False  # wanted, also those that are not among `peers`


def progress(line: str) -> None:
    sys.stderr.write(f"  {time.strftime('%H:%M:%S')} {line}\n")


@contextlib.contextmanager
def fresh(parent: Path) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


class Running:
    """A contender at work; `result` waits for it."""

    def __init__(
        self,
        contender: str,
        task: str,
        place: Path,
        prefix: Sequence[str] = (),
        python: str = sys.executable,
        **options: Any,
    ) -> None:
        handle, name = tempfile.mkstemp(prefix="recollect-bench-", suffix=".json")
        os.close(handle)
        self._out = Path(name)
        job = {"contender": contender, "task": task, "place": str(place), "options": options}
        self._process = subprocess.Popen(
            [*prefix, python, "-m", "bench.worker", name, json.dumps(job)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,  # some peers greet there
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self, timeout: float = 1_200) -> Result:
        try:
            _, said = self._process.communicate(timeout=timeout)
            if self._process.returncode:
                raise Failed(said.strip()[-800:] or f"exit {self._process.returncode}")
            found: Result = json.loads(self._out.read_text())
            return found
        except subprocess.TimeoutExpired as error:
            raise Failed(f"took longer than {timeout:.0f} s") from error
        finally:
            if self._process.poll() is None:
                self._process.kill()
                self._process.communicate()
            self._out.unlink(missing_ok=True)


def run(contender: str, task: str, place: Path, **options: Any) -> Result:
    return Running(contender, task, place, **options).result()


def once(contender: str, task: str, parent: Path, **options: Any) -> Result:
    with fresh(parent) as place:
        return run(contender, task, place, **options)


def side_by_side(
    contenders: Sequence[str],
    task: str,
    where: Path,
    *,
    rounds: int,
    shared: bool = False,
    **options: Any,
) -> dict[str, list[Result]]:
    """Per contender the results of all rounds, each with `raw`, the mean of its neighbours.

    With `shared`, all work on the files in `where`; else each gets an empty directory there.
    """
    found: dict[str, list[Result]] = {name: [] for name in contenders}

    def one(name: str) -> Result:
        return (run if shared else once)(name, task, where, **options)

    for number in range(rounds):
        before = one("raw")
        for name in contenders:
            if number and name != "ours" and found[name][0].get("wall", math.inf) > _SLOW:
                continue
            progress(f"{task} {options or ''} round {number + 1}/{rounds}: {name}")
            try:
                result = one(name)
            except Failed as failure:
                if name == "ours":
                    raise
                found[name].append({"failed": str(failure)})
                continue
            after = one("raw")
            result["raw"] = _mean(before, after)
            found[name].append(result)
            before = after
    return found


def _mean(first: Result, second: Result) -> Result:
    numbers = (int, float)
    return {
        key: (value + second[key]) / 2 if isinstance(value, numbers) else value
        for key, value in first.items()
    }


def ratio(results: Sequence[Result], key: str, raw_key: str | None = None) -> float | None:
    """The median ratio to raw; none where the contender failed or has no such figure."""
    found = [r[key] / r["raw"][raw_key or key] for r in results if r.get(key) is not None]
    return float(statistics.median(found)) if found else None


def median(results: Sequence[Result], key: str, *, of_raw: bool = False) -> float:
    found = [(r["raw"] if of_raw else r)[key] for r in results if "failed" not in r]
    return float(statistics.median(found))


def best(results: Sequence[Result], *, of_raw: bool = False) -> float:
    return float(min((r["raw"] if of_raw else r)["best"] for r in results))


def syncs_per_item(contender: str, task: str, parent: Path, low: int, high: int) -> float | None:
    """Calls of fsync and fdatasync for each item between the low and the high count."""
    strace = shutil.which("strace")
    if strace is None:
        return None
    counts = []
    for count in (low, high):
        with fresh(parent) as place:
            table = place / "strace.txt"
            prefix = [
                strace,
                "-f",
                "--seccomp-bpf",
                "-c",
                "-o",
                str(table),
                "-e",
                "trace=fsync,fdatasync",
            ]
            Running(contender, task, place, prefix=prefix, n=count).result()
            counts.append(sum(map(int, _SYNC.findall(table.read_text()))))
    return (counts[1] - counts[0]) / (high - low)


def directory_bytes(place: Path) -> int:
    return sum(p.stat().st_size for p in place.rglob("*") if p.is_file())
