"""The processes below this one: owns those that left their parents, and ends them all.

A process that adopts orphans (a subreaper) has everything it started below it, however it forked,
changed its session or wiped its environment. Inside a Landlock domain that bounds signals, one call
reaches all of them at once, and a tree that grows while it is ended cannot outrun it; elsewhere
they are first stopped, so that they start nothing more, then killed. The standard library only.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from recollect.execution.landlock import libc

_PARENT_DEATH_SIGNAL, _CHILD_SUBREAPER = 1, 36
_PATIENCE = 3.0  # seconds


def adopt_orphans() -> None:
    libc().prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent(parent: int) -> None:
    """Be killed when the parent dies; at once, if it is dead already."""
    libc().prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def bounds_signals(outside: int) -> bool:
    """Whether no signal of ours reaches a process outside our domain, tried with one of our own
    user's that it would reach otherwise."""
    try:
        os.kill(outside, 0)
    except PermissionError:
        return os.stat(f"/proc/{outside}").st_uid == os.geteuid()
    return False


def reap() -> dict[int, int]:
    """The children that have ended, each with its status."""
    ended: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                break
            ended[child] = status
    return ended


def end_family(*, bounded: bool) -> tuple[dict[int, int], tuple[int, ...]]:
    """Kill all processes below this one: the statuses of our children, and who survived."""
    until = time.monotonic() + _PATIENCE
    ended, pause = reap(), 0.0002
    while True:
        if bounded:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        else:
            _stop_and_kill(until)
        ended |= reap()
        left = _descendants()
        if not left or time.monotonic() > until:
            return ended, left
        time.sleep(pause)
        pause = min(2 * pause, 0.004)


def _stop_and_kill(until: float) -> None:
    stopped: set[int] = set()
    while fresh := set(_descendants()) - stopped:  # what is stopped starts nothing more
        _signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
        if time.monotonic() > until:
            break
    _signal_all(stopped, signal.SIGKILL)


def _signal_all(processes: set[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)


def _descendants() -> tuple[int, ...]:
    """The processes below this one that are not dead."""
    me = os.getpid()
    with suppress(OSError), open(f"/proc/{me}/task/{me}/children", "rb") as file:
        if not file.read(1):  # we adopt orphans: without a child of our own there is nobody
            return ()
    parents: dict[int, list[int]] = {}
    dead: set[int] = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError):
            with open(f"/proc/{name}/stat", "rb") as file:
                # the name of the program may have anything in it, brackets too
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            parents.setdefault(int(parent), []).append(int(name))
            if state in (b"Z", b"X"):
                dead.add(int(name))
    found, waiting = [], [me]
    while waiting:
        children = parents.get(waiting.pop(), [])
        found += children
        waiting += children
    return tuple(process for process in found if process not in dead)
