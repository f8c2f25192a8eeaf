"""One command's process, from its start to the end of the last process that it started.

Its output is read as it comes, also if others hold the pipe. However fast it writes, the event loop
gets its turn after each piece, so time limits and cancellations arrive. Whatever ends the command,
all its processes are killed and the pipe is drained before `run_process` returns or raises.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import subprocess
import time
from contextlib import suppress
from typing import NamedTuple

from recollect.execution.command_output import OutputCapture, OutputRelay
from recollect.execution.kill_tree import COMMAND_MARK, kill_tree
from recollect.execution.sandbox import SandboxLaunch

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
            survivors = await kill_tree(process, mark, contained=launch.contained)
        finally:
            _drain(pipe, capture, relay)
            capture.close()
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
