"""Processes that a command left behind: found by descent or by the mark they carry, and ended.

Nothing here raises because a process has ended meanwhile or is another person's; a process id that
means another process by now is never ended.
"""

from __future__ import annotations

from contextlib import suppress

import psutil


def kill_all(found: list[psutil.Process]) -> tuple[int, ...]:
    for item in found:
        with suppress(psutil.Error):
            item.kill()  # checks that the id still means the same process
    return tuple(item.pid for item in found)


def find_descendants(pid: int) -> list[psutil.Process]:
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return [item for item in found if _is_running(item)]


def find_marked(variable: str, mark: str, first: int) -> list[psutil.Process]:
    """Those whose environment has the mark, but for the first."""
    found = []
    for item in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if item.pid != first and item.environ().get(variable) == mark and _is_running(item):
                found.append(item)
    return found


def _is_running(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
