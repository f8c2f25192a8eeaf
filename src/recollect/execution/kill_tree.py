"""Kills every process of a command, including those that left its session or its group.

Under bubblewrap the kernel kills them with their namespace. Otherwise they are found by descent and
by the mark in their environment. Processes that end meanwhile or belong to somebody else raise
nothing, and a process id that was reused is never killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from contextlib import suppress

import psutil

COMMAND_MARK = "RECOLLECT_COMMAND"  # in the environment of all processes of one command
KILL_SECONDS = 3.0  # how long processes are searched for and killed


async def kill_tree(
    process: subprocess.Popen[bytes], mark: str, *, contained: bool
) -> tuple[int, ...]:
    """Kill what is left of a command; the ids of the processes that survived.

    `contained` says that all of them are in the process's own namespace and end with it.
    """
    until = time.monotonic() + KILL_SECONDS
    try:
        survivors = () if contained else await _kill_family(process, mark, until)
        _kill_group(process)
        while process.poll() is None and time.monotonic() < until:
            await asyncio.sleep(0.002)
    finally:
        # also when we are cancelled once more: nothing stays behind unreaped
        _kill_group(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(KILL_SECONDS)
    return survivors


async def _kill_family(
    process: subprocess.Popen[bytes], mark: str, until: float
) -> tuple[int, ...]:
    """Kill the processes of a command that has no namespace of its own.

    The first process adopts orphans as long as it lives (see `landlock.tie_to_parent`), so it is
    stopped first and killed last. Those that a finished command left behind carry its mark.
    """
    if process.poll() is None:
        with suppress(OSError):
            os.kill(process.pid, signal.SIGSTOP)
        while _kill_all(_find_descendants(process.pid)) and time.monotonic() < until:
            await asyncio.sleep(0.01)
    _kill_group(process)
    while (left := _kill_all(_find_marked(mark, process.pid))) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    return left


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _kill_all(found: list[psutil.Process]) -> tuple[int, ...]:
    for item in found:
        with suppress(psutil.Error):
            item.kill()  # checks that the id still means the same process
    return tuple(item.pid for item in found)


def _find_descendants(pid: int) -> list[psutil.Process]:
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
    return [item for item in found if _is_running(item)]


def _find_marked(mark: str, first: int) -> list[psutil.Process]:
    """Processes whose environment has the mark, except the first."""
    found = []
    for item in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            marked = item.pid != first and item.environ().get(COMMAND_MARK) == mark
            if marked and _is_running(item):
                found.append(item)
    return found


def _is_running(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
