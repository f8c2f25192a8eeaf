"""One command's process, from its start to the end of the last process that it started.

On Linux a supervisor (`supervisor.py`) starts the command and owns all its processes; a pipe that
closes tells it to end them, also when we die. Elsewhere the command is our own child, and its
processes are found by descent and by the mark in their environment; so they are if the supervisor
was killed. Output is read as it comes, also if others hold the pipe. However fast a command writes,
the event loop gets its turn after each piece, so time limits and cancellations arrive. Whatever
ends the command, all its processes are killed and the pipe is drained before `run_process` returns
or raises. An id that was reused is never killed.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from typing import NamedTuple

import psutil

from recollect.execution.command_output import OutputCapture, OutputRelay
from recollect.execution.command_plan import (
    CommandPlan,
    CommandReport,
    decode_report,
    encode_plan,
)
from recollect.execution.fork_server import FORK_SERVER

COMMAND_MARK = "RECOLLECT_COMMAND"  # in the environment of all processes of one command
KILL_SECONDS = 3.0  # how long processes are searched for and killed
_PIPE_BYTES = 256 * 1024
_RELAY_INTERVAL = 0.1  # seconds
_SUPERVISED = sys.platform.startswith("linux")


class _Supervised:
    """A command with a supervisor: it has ended when the pipe of its report is closed."""

    def __init__(self, report: int) -> None:
        self.watched = report  # becomes readable when there is something to `poll` for
        self._said = b""
        self._ended = False

    @property
    def pid(self) -> int:
        """The supervisor's, as long as it runs; 0 when it has ended, or not yet begun."""
        pid, begun, _ = self._said.partition(b"\n")
        return int(pid) if begun and not self._ended else 0

    @property
    def begun(self) -> bool:
        """Whether anything was run: the supervisor first says who it is."""
        return b"\n" in self._said

    def poll(self) -> int | None:
        while not self._ended and (piece := _read_piece(self.watched)) is not None:
            self._said += piece
            self._ended = not piece
        return -signal.SIGKILL if self._ended else None

    def read_report(self) -> CommandReport | None:
        """What the supervisor reported; None if it could not."""
        with suppress(ValueError, LookupError):
            return decode_report(self._said.partition(b"\n")[2])
        return None

    def close(self) -> None:
        os.close(self.watched)


class _Unsupervised:
    """A command that is our own child."""

    begun = True

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.pid, self.poll = popen.pid, popen.poll
        self._popen, self.watched = popen, -1
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self.watched = os.pidfd_open(popen.pid)

    def read_report(self) -> CommandReport | None:
        return None

    def close(self) -> None:
        """Also when we are cancelled once more: nothing stays behind unreaped."""
        if self.poll() is None:
            _kill_group(self.pid)
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(2 * KILL_SECONDS)
        if self.watched >= 0:
            os.close(self.watched)


class _Process(NamedTuple):
    first: _Supervised | _Unsupervised
    mark: str
    output: int  # to read what the command writes
    life: int  # closing it ends the command; -1: nobody is told


def prepare_start() -> None:
    """Start what `run_process` will need, if it does not run yet; it takes a moment."""
    if _SUPERVISED:
        FORK_SERVER.start()


async def run_process(
    plan: CommandPlan, limit: float, capture: OutputCapture, relay: OutputRelay
) -> CommandReport:
    """Run a command for at most `limit` seconds, then kill all of it."""
    for _ in range(2):
        if (report := await _run_once(plan, limit, capture, relay)) is not None:
            return report
    raise OSError("its supervisor does not start")


async def _run_once(
    plan: CommandPlan, limit: float, capture: OutputCapture, relay: OutputRelay
) -> CommandReport | None:
    """None if nothing was run: the process from which supervisors are forked was killed."""
    process = _start(plan)
    in_time = False
    try:
        async with asyncio.timeout(limit):
            await _follow(process.first, process.output, capture, relay)
        in_time = True
    except TimeoutError:
        pass
    finally:
        try:
            report = await _end(process)
        finally:
            _drain(process.output, capture, relay)
    if in_time and not process.first.begun:
        return None
    return report if in_time else report._replace(code=None)


def _start(plan: CommandPlan) -> _Process:
    """Start the command, in a session of its own."""
    mark = secrets.token_hex(8)
    plan = plan._replace(environment={**plan.environment, COMMAND_MARK: mark})
    with ExitStack() as ours, ExitStack() as theirs:
        output, writing = _open_pipe(ours, theirs)
        first, life = (
            _start_supervised(plan, writing, ours, theirs)
            if _SUPERVISED
            else (_Unsupervised(_start_child(plan, writing)), -1)
        )
        ours.pop_all()
    os.set_blocking(output, False)
    with suppress(OSError, AttributeError):  # fewer turns for the same bytes, where Linux grants it
        fcntl.fcntl(output, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return _Process(first, mark, output, life)


def _start_supervised(
    plan: CommandPlan, writing: int, ours: ExitStack, theirs: ExitStack
) -> tuple[_Supervised, int]:
    living, life = os.pipe()
    theirs.callback(os.close, living)
    ours.callback(os.close, life)
    report, reporting = _open_pipe(ours, theirs)
    os.set_blocking(report, False)
    with tempfile.TemporaryFile() as file:
        file.write(encode_plan(plan))
        file.seek(0)
        own = (living, writing, file.fileno(), reporting)
        FORK_SERVER.fork_supervisor((*own, *plan.descriptors))
    return _Supervised(report), life


def _start_child(plan: CommandPlan, writing: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - what to run was judged before
        [word.encode("utf-8", "surrogateescape") for word in plan.words],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=writing,
        cwd=plan.directory,
        env=plan.environment,
        start_new_session=True,
    )


def _open_pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    ours.callback(os.close, reading)
    theirs.callback(os.close, writing)
    return reading, writing


async def _follow(
    first: _Supervised | _Unsupervised, pipe: int, capture: OutputCapture, relay: OutputRelay
) -> None:
    """Read what the command writes until it has ended and the pipe is empty."""
    relayed = time.monotonic()
    is_open = True
    while True:
        ended = first.poll() is not None  # checked first: what it wrote before is in the pipe
        piece = _read_piece(pipe) if is_open else None
        if piece:
            capture.feed(piece)
            relay.feed(piece)
            await asyncio.sleep(0)
        elif ended:
            return
        else:
            is_open = is_open and piece is None
            await _wait_readable([first.watched, *([pipe] if is_open else [])])
        if time.monotonic() - relayed >= _RELAY_INTERVAL:
            relay.flush()
            relayed = time.monotonic()


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


async def _wait_readable(descriptors: list[int]) -> None:
    """Wait until one of them can be read, but no longer than until the next relay is due; -1 is
    none, and whoever waits for it looks often."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    patience = _RELAY_INTERVAL if -1 not in descriptors else 0.02
    descriptors = [item for item in descriptors if item >= 0]
    for descriptor in descriptors:
        loop.add_reader(descriptor, ready.set)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await ready.wait()
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)


async def _end(process: _Process) -> CommandReport:
    """Kill what is left of a command, and close what we hold of it but its output."""
    first, until = process.first, time.monotonic() + 2 * KILL_SECONDS
    report = None
    try:
        if process.life >= 0:
            os.close(process.life)  # it ends the command, if that still runs, and then itself
            while first.poll() is None and time.monotonic() < until:
                await _wait_readable([first.watched])
            report = first.read_report()
        if report is None:
            survivors = await _kill_family(first, process.mark, time.monotonic() + KILL_SECONDS)
            report = CommandReport(first.poll(), survivors)
    finally:
        first.close()
    return report


async def _kill_family(
    first: _Supervised | _Unsupervised, mark: str, until: float
) -> tuple[int, ...]:
    """Kill the processes of a command without a supervisor, or with one that does not answer.

    A first process that adopts orphans is stopped first and killed last. Those that a finished
    command left behind carry its mark.
    """
    if first.poll() is None and first.pid:
        with suppress(OSError):
            os.kill(first.pid, signal.SIGSTOP)
        while _kill_all(_find_descendants(first.pid)) and time.monotonic() < until:
            await asyncio.sleep(0.01)
    if first.pid:
        _kill_group(first.pid)
    while (left := _kill_all(_find_marked(mark, first.pid))) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    return left


def _kill_group(pid: int) -> None:
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


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
