"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import apsw

from recollect.store.open_file import filesystem_type

_OURS = ("recollect", "apsw", "msgspec", "zstandard")


def describe(memory: Path, disk: Path, peers: tuple[str, ...]) -> dict[str, Any]:
    import sqlite3

    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "memory": f"{filesystem_type(memory) or 'unknown'} at {memory.parent}",
        "disk": filesystem_type(disk) or "unknown",
        "load": load(),
        "python": platform.python_version(),
        "sqlite": f"{apsw.sqlite_lib_version()} (sqlite3 module: {sqlite3.sqlite_version})",
        "packages": {name: _version(name) for name in (*_OURS, *peers)},
    }


def load() -> str:
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
