"""How long `recollect --version` takes, against a bare interpreter."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Setting, progress
from bench.report import Row, Table, seconds


def startup(setting: Setting) -> Table:
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        'python -c "import recollect"': [sys.executable, "-c", "import recollect"],
    }
    for name in ("recollect", "hermes") if setting.peers else ("recollect",):
        beside = Path(sys.executable).parent / name
        if beside.exists():
            commands[f"{name} --version"] = [str(beside), "--version"]
    if "recollect --version" not in commands:
        setting.notes.append("recollect --version: no console script beside this interpreter")
    took = _interleaved(commands, setting.scale.starts)
    base_wall, base_cpu = (statistics.median(x) for x in zip(*took["python -c pass"], strict=True))
    rows: list[Row] = []
    for name, pairs in list(took.items())[1:]:
        wall, cpu = (statistics.median(x) for x in zip(*pairs, strict=True))
        if name == "hermes --version":
            rows[-1].peers["hermes --version"] = wall / base_wall
            continue
        target = 2.5 if name == "recollect --version" else None
        rows.append(
            Row(f"{name}, wall", wall / base_wall, target, seconds(base_wall), rounds=pairs)
        )
        rows.insert(-1, Row(f"{name}, CPU", cpu / base_cpu, None, seconds(base_cpu)))
    note = f"1 is `python -c pass`; median of {setting.scale.starts} interleaved runs each."
    return Table("startup", "Start-up", note, tuple(rows))


def _interleaved(commands: dict[str, list[str]], runs: int) -> dict[str, list[tuple[float, float]]]:
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(runs + 1):
        if number % 5 == 0:
            progress(f"start-up {number}/{runs}")
        for name, command in commands.items():
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(command, check=False, capture_output=True, cwd="/")
            wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if number:  # the first fills the page cache
                took[name].append((wall, cpu))
    return took
