"""One command's process, from its start to the end of the last process that it started.

Its output is read as it comes, also if others hold the pipe. However fast it writes, the event loop
gets its turn after each piece, so time limits and cancellations arrive. Whatever ends the command,
all its processes are killed and the pipe is drained before `run_process` returns or raises: also
those that left its session or its group. Under bubblewrap the kernel kills them with their
namespace; otherwise they are found by descent and by the mark in their environment. Processes that
end meanwhile or belong to somebody else raise nothing, and an id that was reused is never killed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import signal
import subprocess
import time
from contextlib import suppress
from typing import NamedTuple

import psutil

from recollect.execution.command_output import OutputCapture, OutputRelay
from recollect.execution.sandbox import SandboxLaunch

COMMAND_MARK = "RECOLLECT_COMMAND"  # in the environment of all processes of one command
KILL_SECONDS = 3.0  # how long processes are searched for and killed
_PIPE_BYTES = 256 * 1024
_RELAY_INTERVAL = 0.1  # seconds


class ProcessEnd(NamedTuple):
    code: int | None  # None: the time limit ended it
    survivors: tuple[int, ...]  # ids of processes that could not be killed


async def run_process(
    words: tuple[bytes | str, ...],
    launch: SandboxLaunch,
    limit: float,
    capture: OutputCapture,
    relay: OutputRelay,
) -> ProcessEnd:
    """Run a command for at most `limit` seconds, then kill all of it."""
    code: int | None = None
    mark = secrets.token_hex(8)
    process, pipe = _start(words, launch, mark)
    try:
        async with asyncio.timeout(limit):
            await _follow(process, pipe, capture, relay)
        code = process.returncode
    except TimeoutError:
        pass
    finally:
        try:
            survivors = await _kill_tree(process, mark, contained=launch.contained)
        finally:
            _drain(pipe, capture, relay)
    return ProcessEnd(code, survivors)


def _start(
    words: tuple[bytes | str, ...], launch: SandboxLaunch, mark: str
) -> tuple[subprocess.Popen[bytes], int]:
    """The process, in a session of its own, and the descriptor to read its output from."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 - what to run was judged before
            (*launch.prefix, *words),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            cwd=launch.directory,
            env={**launch.environment, COMMAND_MARK: mark},
            pass_fds=launch.descriptors,
            start_new_session=True,
        )
    except OSError:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    os.set_blocking(reading, False)
    with suppress(OSError, AttributeError):  # fewer turns for the same bytes, where Linux grants it
        fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return process, reading


async def _follow(
    process: subprocess.Popen[bytes], pipe: int, capture: OutputCapture, relay: OutputRelay
) -> None:
    """Read what the process writes until it has ended and the pipe is empty."""
    watched = _open_pidfd(process)
    relayed = time.monotonic()
    is_open = True
    try:
        while True:
            ended = process.poll() is not None  # checked first: what it wrote before is in the pipe
            piece = _read_piece(pipe) if is_open else None
            if piece:
                capture.feed(piece)
                relay.feed(piece)
                await asyncio.sleep(0)
            elif ended:
                return
            else:
                is_open = is_open and piece is None
                await _wait_readable([*watched, *([pipe] if is_open else [])])
            if time.monotonic() - relayed >= _RELAY_INTERVAL:
                relay.flush()
                relayed = time.monotonic()
    finally:
        for descriptor in watched:
            os.close(descriptor)


def _drain(pipe: int, capture: OutputCapture, relay: OutputRelay) -> None:
    """Read what is still in the pipe when everything has ended, then close it."""
    try:
        for _ in range(64):  # a process that was not found may go on writing
            piece = _read_piece(pipe)
            if not piece:
                break
            capture.feed(piece)
            relay.feed(piece)
    finally:
        os.close(pipe)
    relay.flush(last=True)


def _read_piece(descriptor: int) -> bytes | None:
    """Some bytes; b"" at the end; None when there are none yet."""
    try:
        return os.read(descriptor, _PIPE_BYTES)
    except BlockingIOError:
        return None


def _open_pidfd(process: subprocess.Popen[bytes]) -> list[int]:
    """A descriptor that becomes readable when the process ends, where the system has those."""
    if hasattr(os, "pidfd_open"):
        with suppress(OSError):
            return [os.pidfd_open(process.pid)]
    return []


async def _wait_readable(descriptors: list[int]) -> None:
    """Wait until one of them can be read, but no longer than until the next relay is due."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    for descriptor in descriptors:
        loop.add_reader(descriptor, ready.set)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RELAY_INTERVAL if len(descriptors) > 1 else 0.02):
                await ready.wait()
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


async def _kill_tree(
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
