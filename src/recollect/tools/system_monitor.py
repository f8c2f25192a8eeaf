"""What a machine says of itself, in lines; what it does not say is unknown. Takes `INTERVAL`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil

INTERVAL = 0.2  # seconds over which the use of the processors is measured


def measure_system(root: Path) -> str:
    measures: tuple[tuple[str, Callable[[], str]], ...] = (
        ("cpu", _measure_cpu),
        ("load", _measure_load),
        ("memory", _measure_memory),
        ("swap", _measure_swap),
        ("disk", lambda: _measure_disk(root)),
        ("this process", _measure_process),
    )
    return "\n".join(f"{name}: {_measure(measure)}" for name, measure in measures)


def _measure(measure: Callable[[], str]) -> str:
    """Containers hide one figure or another."""
    try:
        return measure()
    except (OSError, RuntimeError, AttributeError, ValueError, psutil.Error):
        return "unknown"


def _measure_cpu() -> str:
    used = psutil.cpu_percent(interval=INTERVAL)
    return f"{used:.0f} % of {psutil.cpu_count() or 1} processors in use"


def _measure_load() -> str:
    one, five, fifteen = psutil.getloadavg()
    return f"{one:.2f} over 1 minute, {five:.2f} over 5, {fifteen:.2f} over 15"


def _measure_memory() -> str:
    found = psutil.virtual_memory()
    return f"{_format_size(found.available)} of {_format_size(found.total)} available ({found.percent:.0f} % used)"


def _measure_swap() -> str:
    found = psutil.swap_memory()
    return (
        f"{_format_size(found.used)} of {_format_size(found.total)} used" if found.total else "none"
    )


def _measure_disk(root: Path) -> str:
    found = psutil.disk_usage(str(root))
    return f"{_format_size(found.free)} of {_format_size(found.total)} free ({found.percent:.0f} % used)"


def _measure_process() -> str:
    return f"{_format_size(psutil.Process().memory_info().rss)} of memory"


def _format_size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1_000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1_000
    return f"{count:.1f} TB"
