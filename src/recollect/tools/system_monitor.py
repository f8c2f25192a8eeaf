"""How busy the machine is, in a few lines; a figure that the machine hides is "unknown"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from recollect.text import format_size

INTERVAL = 0.2  # seconds over which the use of the processors is measured


def measure_system(root: Path, metric: str) -> str:
    """The figures of one metric, or of all; `root` says which disk. The processors are measured
    for `INTERVAL` seconds."""
    measures: tuple[tuple[str, str, Callable[[], str]], ...] = (
        ("cpu", "cpu", _cpu),
        ("cpu", "load", _load),
        ("memory", "memory", _memory),
        ("memory", "swap", _swap),
        ("disk", "disk", lambda: _disk(root)),
        ("memory", "this process", _own_memory),
    )
    wanted = [(name, measure) for kind, name, measure in measures if metric in ("all", kind)]
    return "\n".join(f"{name}: {_try(measure)}" for name, measure in wanted)


def _try(measure: Callable[[], str]) -> str:
    """Containers hide one figure or another."""
    try:
        return measure()
    except (OSError, RuntimeError, AttributeError, ValueError, psutil.Error):
        return "unknown"


def _cpu() -> str:
    used = psutil.cpu_percent(interval=INTERVAL)
    return f"{used:.0f} % of {psutil.cpu_count() or 1} processors in use"


def _load() -> str:
    one, five, fifteen = psutil.getloadavg()
    return f"{one:.2f} over 1 minute, {five:.2f} over 5, {fifteen:.2f} over 15"


def _memory() -> str:
    found = psutil.virtual_memory()
    sizes = f"{format_size(found.available)} of {format_size(found.total)}"
    return f"{sizes} available ({found.percent:.0f} % used)"


def _own_memory() -> str:
    return f"{format_size(psutil.Process().memory_info().rss)} of memory"


def _swap() -> str:
    found = psutil.swap_memory()
    sizes = f"{format_size(found.used)} of {format_size(found.total)}"
    return f"{sizes} used" if found.total else "none"


def _disk(root: Path) -> str:
    found = psutil.disk_usage(str(root))
    sizes = f"{format_size(found.free)} of {format_size(found.total)}"
    return f"{sizes} free ({found.percent:.0f} % used)"
