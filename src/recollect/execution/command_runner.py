"""Running commands: `run_shell_command`, and `read_job` and `end_job` for those in the background.

A command is exactly the bytes that the model wrote, with an empty standard input and a clean
environment, inside the isolation that `sandbox` found. It ends with its time limit, a cancellation
or by itself, and then all its processes end: under bubblewrap the kernel sees to it; otherwise
whatever descends from it, belongs to its group or carries its mark is searched for and ended, and
what remains is told. Memory stays flat however much it writes. Jobs are few, and they end with us.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect import settings
from recollect.entries import Text
from recollect.execution.command_output import (
    OutputCapture,
    OutputRelay,
    drain_output,
    follow_output,
    start_process,
)
from recollect.execution.sandbox import (
    GUARDED_NAMES,
    PROGRAM_PATH,
    SECRET_PATHS,
    GuardedName,
    Isolation,
    SandboxLaunch,
    SandboxPolicy,
    enter_sandbox,
    find_isolation,
)
from recollect.tools.tool import ToolContext, ToolFailed, ToolOutput

COMMAND_MARK = "RECOLLECT_COMMAND"  # in the environment of all processes of one command
MAX_COMMAND_BYTES = 100_000  # bytes; the system takes 131,071 in one word
KEPT_OUTPUTS = 10  # files of long outputs
_KILL_SECONDS = 3.0  # seconds in which processes are searched for and ended


class CommandLimits(msgspec.Struct, frozen=True, kw_only=True):
    timeout: float = 120.0  # seconds, when the model names none
    longest: float = 3_600.0
    max_job_timeout: float = 86_400.0
    jobs: int = 8  # that run at the same time


class CommandEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended. `code` is none when it was ended by us."""

    code: int | None
    seconds: float
    left: tuple[int, ...] = ()  # processes that could not be ended
    repairs: tuple[str, ...] = ()


class _PreparedCommand(NamedTuple):
    """A command that can be carried out: everything about it was checked."""

    words: tuple[bytes | str, ...]
    policy: SandboxPolicy
    directory: str
    limit: float
    capture: OutputCapture
    telling: OutputRelay


class _Job(NamedTuple):
    name: str
    command: str
    began: float
    order: _PreparedCommand
    task: asyncio.Task[CommandEnd]


class CommandRunner:
    """The commands of one session. `close` ends its jobs and removes its temporary files."""

    def __init__(
        self,
        *,
        isolation: Isolation | None = None,
        network: bool = False,
        home: Path | None = None,
        hidden: tuple[str, ...] = SECRET_PATHS,
        guarded: tuple[GuardedName, ...] = GUARDED_NAMES,
        limits: CommandLimits | None = None,
    ) -> None:
        self._isolation = isolation
        self.network, self.limits = network, limits or CommandLimits()
        self._home = os.path.realpath(home or Path.home())
        self._hidden, self._guarded = (*hidden, str(settings.data_directory())), guarded
        self._folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="recollect-")))
        self._remove = weakref.finalize(self, shutil.rmtree, self._folder, True)  # noqa: FBT003
        self._jobs: dict[str, _Job] = {}
        self._outputs: list[Path] = []
        self._count = 0

    @property
    def isolation(self) -> Isolation:
        """What was given, else what this machine can do: found out when it is first needed."""
        return self._isolation or find_isolation()

    async def close(self) -> None:
        running = [job.task for job in self._jobs.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._remove()

    def policy(self, place: ToolContext) -> SandboxPolicy:
        roots = tuple(dict.fromkeys(os.path.realpath(root) for root in place.roots))
        for root in roots:
            if root == "/" or not Path(root).is_dir():
                raise ToolFailed(f"{root} cannot be a workspace for commands; open another folder")
        return SandboxPolicy(
            roots=roots,
            home=self._home,
            temporary=str(self._folder / "tmp"),
            shown=(str(self._folder / "output"),),
            secrets=self._hidden,
            guarded=self._guarded,
            network=self.network,
        )

    async def run(
        self, place: ToolContext, command: str, directory: str, seconds: float
    ) -> ToolOutput:
        limit = min(_check_timeout(seconds) or self.limits.timeout, self.limits.longest)
        order = self._order(place, command, directory, limit)
        return self._told(order, await self._carry_out(order))

    async def begin(
        self, place: ToolContext, command: str, directory: str, seconds: float
    ) -> ToolOutput:
        limit = min(
            _check_timeout(seconds) or self.limits.max_job_timeout, self.limits.max_job_timeout
        )
        order = self._order(place, command, directory, limit)
        running = [job.name for job in self._jobs.values() if not job.task.done()]
        if len(running) >= self.limits.jobs:
            names = ", ".join(running)
            raise ToolFailed(f"{len(running)} jobs run already ({names}); end one with end_job")
        self._forget_old()
        self._count += 1
        name = f"job-{self._count}"
        task = asyncio.create_task(self._carry_out(order), name=name)
        self._jobs[name] = _Job(name, command, time.monotonic(), order, task)
        # a command that fails at once is told at once
        await asyncio.wait((task,), timeout=0.3)
        return self.read(name)

    def read(self, name: str) -> ToolOutput:
        job = self._job(name)
        if job.task.done() and not job.task.cancelled():
            return self._told(job.order, job.task.result())
        status = "ended" if job.task.done() else "running"
        seconds = time.monotonic() - job.began
        how = "was ended" if job.task.done() else f"runs since {seconds:.1f} s; read_job shows more"
        text = f"{_output_text(job.order.capture)}\n[{name} {how}]"
        return ToolOutput(content=(Text(text=text),), status=status)

    def listed(self) -> str:
        lines = [
            f"{job.name}  {'ended' if job.task.done() else 'running'}  "
            f"{time.monotonic() - job.began:.0f} s ago  {job.command[:200]!r}"
            for job in self._jobs.values()
        ]
        return "\n".join(lines) or "no job was started in the background"

    async def end(self, name: str) -> ToolOutput:
        job = self._job(name)
        job.task.cancel()
        await asyncio.wait((job.task,), timeout=2 * _KILL_SECONDS)
        return self.read(name)

    def _job(self, name: str) -> _Job:
        if name not in self._jobs:
            raise ToolFailed(f"no job {name[:40]!r}; known: {', '.join(self._jobs) or 'none'}")
        return self._jobs[name]

    def _forget_old(self) -> None:
        done = [name for name, job in self._jobs.items() if job.task.done()]
        for name in done[: max(0, len(done) - self.limits.jobs)]:
            del self._jobs[name]

    def _order(
        self, place: ToolContext, command: str, directory: str, limit: float
    ) -> _PreparedCommand:
        words, policy = _command_words(command), self.policy(place)
        where = _resolve_directory(policy, directory)
        for name in ("tmp", "output"):  # each time: an unsandboxed command may have removed them
            (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._folder / "output" / f"{secrets.token_hex(4)}.txt"
        self._outputs.append(path)
        while len(self._outputs) > KEPT_OUTPUTS + self.limits.jobs:
            self._outputs.pop(0).unlink(missing_ok=True)
        return _PreparedCommand(
            words, policy, where, limit, OutputCapture(path), OutputRelay(place.tell)
        )

    async def _carry_out(self, order: _PreparedCommand) -> CommandEnd:
        began = time.monotonic()
        try:
            with enter_sandbox(order.policy, self.isolation, order.directory) as place:
                code, left = await self._live(order, place)
        except OSError as error:
            raise ToolFailed(f"the command cannot be run: {error.strerror or error}") from None
        seconds = time.monotonic() - began
        return CommandEnd(code=code, seconds=seconds, left=left, repairs=tuple(place.repairs))

    async def _live(
        self, order: _PreparedCommand, place: SandboxLaunch
    ) -> tuple[int | None, tuple[int, ...]]:
        """From the start of a command to the end of its last process."""
        code: int | None = None
        mark = secrets.token_hex(8)
        process, reading = start_process(order.words, place, {COMMAND_MARK: mark})
        try:
            async with asyncio.timeout(order.limit):
                await follow_output(process, reading, order.capture, order.telling)
            code = process.returncode
        except TimeoutError:
            pass
        finally:
            try:
                left = await self._end(process, mark)
            finally:
                drain_output(reading, order.capture, order.telling)
                order.capture.close()
        return code, left

    async def _end(self, process: subprocess.Popen[bytes], mark: str) -> tuple[int, ...]:
        """Ends whatever is left of a command; what could not be ended."""
        alone = self.isolation.kind == "bubblewrap"
        until = time.monotonic() + _KILL_SECONDS
        try:
            left = () if alone else await _kill_family(process, mark, until)
            _kill_group(process)
            while process.poll() is None and time.monotonic() < until:
                await asyncio.sleep(0.002)
        finally:
            # also when we are cancelled once more: nothing stays behind unreaped
            _kill_group(process)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_KILL_SECONDS)
        return left

    def _told(self, order: _PreparedCommand, ended: CommandEnd) -> ToolOutput:
        if ended.code is None:
            status, longest = "timed out", self.limits.longest
            notes = [f"ended by the time limit of {order.limit:g} s"]
            notes.append(f"give a longer timeout (at most {longest:g}) or background=true")
        else:
            status = f"exit {ended.code}"
            notes = [
                f"exit code {ended.code}{_signal_name(ended.code)} after {ended.seconds:.1f} s"
            ]
        if ended.code != 0:
            net = "" if self.network or self.isolation.kind == "none" else ", no network"
            notes.append(self.isolation.words + net)
            notes += self.isolation.limitations if self.isolation.kind == "landlock" else ()
        if ended.left:
            notes.append(f"could not be ended: processes {', '.join(map(str, ended.left[:20]))}")
        notes += ended.repairs
        text = f"{_output_text(order.capture)}\n[{'; '.join(notes)}]"
        return ToolOutput(content=(Text(text=text),), is_error=ended.code != 0, status=status)


def _check_timeout(given: float) -> float:
    if not 0 <= given < 1e9:
        raise ToolFailed(f"timeout must be a number of seconds, not {given}")
    return given


def _command_words(command: str) -> tuple[bytes | str, ...]:
    try:
        line = command.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolFailed("the command has characters that are no text; write it again") from None
    if not line.strip():
        raise ToolFailed("the command is empty; write what to run")
    if b"\x00" in line:
        raise ToolFailed("a command cannot have a NUL character; write it as \\0 inside quotes")
    if len(line) > MAX_COMMAND_BYTES:
        raise ToolFailed(
            f"the command has {len(line):,} bytes, the limit is {MAX_COMMAND_BYTES:,}; "
            "write a script with write_file and run that"
        )
    bash = shutil.which("bash", path=PROGRAM_PATH)
    options = ("--noprofile", "--norc") if bash else ()
    # without `--` a command that begins with a hyphen would be taken for an option
    return (bash or "/bin/sh", *options, "-c", "--", line)


def _resolve_directory(policy: SandboxPolicy, given: str) -> str:
    if "\x00" in given or len(given) > 4096:
        raise ToolFailed("the directory is no path; give a folder in the workspace")
    try:
        real = os.path.realpath(Path(policy.roots[0], given))
        usable = Path(real).is_dir()
    except (OSError, ValueError) as error:
        raise ToolFailed(f"the directory cannot be used: {type(error).__name__}") from None
    if not any(Path(real).is_relative_to(root) for root in policy.roots):
        raise ToolFailed(f"{given[:200]!r} is outside the workspace; give a folder inside it")
    if not usable:
        raise ToolFailed(f"there is no folder {given[:200]!r}; list_directory shows what there is")
    return real


def _output_text(capture: OutputCapture) -> str:
    return capture.text().rstrip() or "(no output)"


def _signal_name(code: int) -> str:
    number = -code if code < 0 else code - 128
    with suppress(ValueError):
        return f" ({signal.Signals(number).name})" if number > 0 else ""
    return ""


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


async def _kill_family(
    process: subprocess.Popen[bytes], mark: str, until: float
) -> tuple[int, ...]:
    """Ends the processes of a command that has no namespace; the ids of those that withstood.

    The first process adopts orphans as long as it lives (see `landlock.stay_with_parent`), so it
    is stopped first and ended last. Those that a finished command left behind carry its mark.
    """
    from recollect.execution.kill_tree import find_descendants, find_marked, kill_all

    if process.poll() is None:
        with suppress(OSError):
            os.kill(process.pid, signal.SIGSTOP)
        while kill_all(find_descendants(process.pid)) and time.monotonic() < until:
            await asyncio.sleep(0.01)
    _kill_group(process)
    while (
        left := kill_all(find_marked(COMMAND_MARK, mark, process.pid))
    ) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    return left
