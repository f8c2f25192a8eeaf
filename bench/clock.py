"""Wall time and the CPU time of the whole process, threads included, between two moments."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import directory_bytes


class Moment(NamedTuple):
    wall: float
    cpu: float


def now() -> Moment:
    return Moment(time.perf_counter(), time.process_time())


def settle() -> None:
    """What was built for the measurement is not the contender's: the collector may forget it."""
    gc.collect()
    gc.freeze()


def spans(before: Moment, acknowledged: Moment, done: Moment, place: Path) -> dict[str, Any]:
    """`wall` and `cpu` until the last append returned, `…_all` until everything was closed."""
    return {
        "wall": acknowledged.wall - before.wall,
        "cpu": acknowledged.cpu - before.cpu,
        "wall_all": done.wall - before.wall,
        "cpu_all": done.cpu - before.cpu,
        "bytes": directory_bytes(place),
    }


async def repeat(work: Callable[[], Awaitable[int]], repeats: int) -> dict[str, Any]:
    """The median of several runs after one that is not counted; `count` is what it returned.

    `best` is the shortest wall time, `best_cpu` the shortest CPU time: noise only ever adds, so
    they are the better measure where a contender is compared with itself.
    """
    count = await work()
    settle()
    walls, cpus = [], []
    for _ in range(repeats):
        before = now()
        await work()
        after = now()
        walls.append(after.wall - before.wall)
        cpus.append(after.cpu - before.cpu)
    return {
        "wall": statistics.median(walls),
        "cpu": statistics.median(cpus),
        "best": min(walls),
        "best_cpu": min(cpus),
        "count": count,
    }
