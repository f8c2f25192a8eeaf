"""How busy the machine is, in a few lines; a figure that the machine hides is "unknown"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

from recollect.text import format_size

INTERVAL = 0.2  # seconds over which the use of the processors is measured


def measure_system(root: Path) -> str:
    """Measure for `INTERVAL` seconds; `root` says which disk."""
    measures: tuple[tuple[str, Callable[[], str]], ...] = (
        ("cpu", _cpu),
        ("load", _load),
        ("memory", _memory),
        ("swap", _swap),
        ("disk", lambda: _disk(root)),
        ("this process", lambda: f"{format_size(psutil.Process().memory_info().rss)} of memory"),
    )
    return "\n".join(f"{name}: {_try(measure)}" for name, measure in measures)


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


def _swap() -> str:
    found = psutil.swap_memory()
    sizes = f"{format_size(found.used)} of {format_size(found.total)}"
    return f"{sizes} used" if found.total else "none"


def _disk(root: Path) -> str:
    found = psutil.disk_usage(str(root))
    sizes = f"{format_size(found.free)} of {format_size(found.total)}"
    return f"{sizes} free ({found.percent:.0f} % used)"
