"""Runs the commands of one session, in the foreground or as jobs in the background.

A command is exactly the bytes that the model wrote, with an empty standard input and a clean
environment, inside the isolation that `sandbox` found. It ends by itself, by its time limit or by a
cancellation; then all its processes are killed, and the result names any that survived. Memory
stays flat however much it writes. What a result does not show of its output goes to the log, also
if it was cancelled. Jobs are few, and they end with us.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.errors import RecollectError
from recollect.execution.bubblewrap import PROGRAM_PATH
from recollect.execution.command_output import OutputCapture, OutputRelay
from recollect.execution.command_plan import CommandReport
from recollect.execution.guarded_names import GUARDED_NAMES, GuardedName
from recollect.execution.hidden_secrets import (
    HiddenNotes,
    explain_incomplete,
    find_hidden,
    make_covers,
    remove_covers,
)
from recollect.execution.output_recorder import OutputRecorder
from recollect.execution.process import KILL_SECONDS, prepare_start, run_process
from recollect.execution.replaced_files import keep_replaced
from recollect.execution.sandbox import (
    Isolation,
    SandboxChoice,
    SandboxPolicy,
    enter_sandbox,
    find_isolation,
)
from recollect.settings import data_directory
from recollect.store.output_notes import OutputLog, job_name
from recollect.workspace.private_paths import SECRET_PATHS
from recollect.workspace.workspace_secrets import ShownSecrets, WorkspaceSecrets

MAX_COMMAND_BYTES = 100_000  # the system takes 131,071 in one word


class CommandRefused(RecollectError):
    """A command that cannot be run: the fact, then the remedy."""


class CommandLimits(msgspec.Struct, frozen=True, kw_only=True):
    timeout: float = 120.0  # seconds, when the request names none
    max_timeout: float = 3_600.0
    max_job_timeout: float = 86_400.0
    jobs: int = 8  # that run at the same time
    first_look: float = 0.3  # seconds after which a new job is reported: some fail at once


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a command has written so far, and in brackets how it ended or that it runs."""

    text: str
    status: str
    is_error: bool = False


class _Command(NamedTuple):
    """A request that was checked and can be carried out."""

    words: tuple[str, ...]
    policy: SandboxPolicy
    directory: str
    limit: float
    output: OutputRecorder
    relay: OutputRelay
    approved: bool


class _CommandEnd(NamedTuple):
    """How a command ended, what was repaired after it, and what was hidden from it."""

    process: CommandReport
    seconds: float
    repairs: list[str]
    hidden: WorkspaceSecrets


class _Job(NamedTuple):
    name: str
    line: str
    started: float
    command: _Command
    task: asyncio.Task[_CommandEnd]


class CommandRunner:
    """The commands of one session. `close` ends its jobs and removes its temporary files."""

    def __init__(
        self,
        *,
        isolation: Isolation | None = None,
        sandbox: SandboxChoice = "auto",
        network: bool = False,
        home: Path | None = None,
        hidden: tuple[str, ...] = SECRET_PATHS,
        guarded: tuple[GuardedName, ...] = GUARDED_NAMES,
        programs: tuple[str, ...] = (),
        shown: ShownSecrets | None = None,
        limits: CommandLimits | None = None,
    ) -> None:
        self._isolation, self._choice, self._network = isolation, sandbox, network
        self._limits = limits or CommandLimits()
        self._home = os.path.realpath(home or Path.home())
        self._hidden, self._guarded = (*hidden, str(data_directory())), guarded
        self._programs, self._shown = programs, shown or ShownSecrets()
        self._folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="recollect-")))
        self._remove = weakref.finalize(self, _remove_folder, self._folder)
        self._jobs: dict[str, _Job] = {}
        self._count = 0
        self._introduced = False  # whether a result has said which isolation is in force
        self._hidden_notes = HiddenNotes()

    @property
    def isolation(self) -> Isolation:
        """The isolation given, else what this machine can do, found out on first use."""
        return self._isolation or find_isolation(self._choice)

    async def close(self) -> None:
        running = [job.task for job in self._jobs.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for job in self._jobs.values():
            await job.command.output.settle()
        self._remove()

    async def run(
        self,
        line: str,
        roots: tuple[Path, ...],
        directory: str,
        seconds: float,
        relay: Callable[[str], None],
        log: OutputLog,
        *,
        background: bool,
        approved: bool = False,
    ) -> CommandResult:
        """Run a command line, to its end or in the background, in a directory inside the roots
        (empty: the first root). It may take so many seconds (0: the default); `relay` gets its
        output while it runs, `log` what the result does not show. It sees the secrets of the
        workspace only if the user has allowed this very line."""
        if self.isolation.refusal:
            raise CommandRefused(self.isolation.refusal)
        limits = self._limits
        longest = limits.max_job_timeout if background else limits.max_timeout
        default = longest if background else limits.timeout
        if not 0 <= seconds < 1e9:
            raise CommandRefused(f"timeout must be a number of seconds, not {seconds}")
        limit = min(seconds or default, longest)
        words, policy = _command_words(line), self._policy(roots)
        directory = _resolve_directory(policy, directory)
        output = OutputRecorder(OutputCapture(self._folder), log)
        command = _Command(words, policy, directory, limit, output, OutputRelay(relay), approved)
        if background:
            return await self._start_job(line, command)
        try:
            return await self._report(command, await self._execute(command))
        finally:  # also if it was cancelled
            await output.settle()

    async def _start_job(self, line: str, command: _Command) -> CommandResult:
        running = [job.name for job in self._jobs.values() if not job.task.done()]
        if len(running) >= self._limits.jobs:
            names = ", ".join(running)
            raise CommandRefused(f"{len(running)} jobs run already ({names}); end one with end_job")
        done = [name for name, job in self._jobs.items() if job.task.done()]
        for name in done[: -self._limits.jobs]:  # the oldest are forgotten
            await self._jobs.pop(name).command.output.settle()
        self._count += 1
        name = job_name(self._count)
        command.output.job = name
        task = asyncio.create_task(self._execute(command), name=name)
        self._jobs[name] = _Job(name, line, time.monotonic(), command, task)
        await asyncio.wait((task,), timeout=self._limits.first_look)
        return await self.read_job(name)

    async def read_job(
        self, name: str, find_recorded: Callable[[], str] = lambda: ""
    ) -> CommandResult:
        """What a job has written so far, and whether it still runs; `find_recorded` returns the
        handle of what the log has of an earlier job of this name."""
        job = self._find_job(name, find_recorded)
        if job.task.cancelled():
            status, state = "ended", "was ended"
        elif job.task.done():
            return await self._report(job.command, job.task.result())
        else:
            seconds = time.monotonic() - job.started
            status, state = "running", f"runs since {seconds:.1f} s; read_job shows more"
        said = await job.command.output.report(ended=job.task.done())
        return CommandResult(text=f"{said}\n[{name} {state}]", status=status)

    def list_jobs(self) -> str:
        lines = [
            f"{job.name}  {'ended' if job.task.done() else 'running'}  "
            f"{time.monotonic() - job.started:.0f} s ago  {job.line[:200]!r}"
            for job in self._jobs.values()
        ]
        return "\n".join(lines) or "no job was started in the background"

    async def end_job(
        self, name: str, find_recorded: Callable[[], str] = lambda: ""
    ) -> CommandResult:
        job = self._find_job(name, find_recorded)
        job.task.cancel()
        await asyncio.wait((job.task,), timeout=2 * KILL_SECONDS)
        return await self.read_job(name)

    def _find_job(self, name: str, find_recorded: Callable[[], str]) -> _Job:
        job = self._jobs.get(name) or self._jobs.get(job_name(name))
        if job is not None:
            return job
        if recorded := find_recorded():
            raise CommandRefused(
                f"job {name[:40]!r} ended with the program that started it; "
                f"recall {recorded} gives what it had printed"
            )
        raise CommandRefused(f"no job {name[:40]!r}; known: {', '.join(self._jobs) or 'none'}")

    def _policy(self, given: tuple[Path, ...]) -> SandboxPolicy:
        roots = tuple(dict.fromkeys(os.path.realpath(root) for root in given))
        unfit = next((root for root in roots if root == "/" or not Path(root).is_dir()), None)
        if unfit is not None:
            raise CommandRefused(f"{unfit} cannot be a workspace for commands; open another folder")
        own = {name: str(self._folder / name) for name in ("tmp", "shm", "replaced")}
        for folder in own.values():  # an unsandboxed command may have removed them
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        return SandboxPolicy(
            roots=roots,
            home=self._home,
            temporary=own["tmp"],
            shared_memory=own["shm"],
            aside=own["replaced"],
            secrets=self._hidden,
            guarded=self._guarded,
            programs=self._programs,
            covers=make_covers(self._folder),
            network=self._network,
        )

    async def _execute(self, command: _Command) -> _CommandEnd:
        started = time.monotonic()
        prepare_start()
        hidden = await self._find_hidden(command)
        policy = msgspec.structs.replace(command.policy, hidden=hidden)
        entering = enter_sandbox(policy, self.isolation, command.directory)
        with ExitStack() as stack:
            try:
                # in a thread: a large workspace takes a while to be surveyed
                launch = await asyncio.to_thread(stack.enter_context, entering)
                plan = launch.plan._replace(words=(*launch.plan.words, *command.words))
                output, relay = command.output.capture, command.relay
                ended = await run_process(plan, command.limit, output, relay)
            except OSError as error:
                why = error.strerror or error
                raise CommandRefused(f"the command cannot be run: {why}") from None
        repairs = [*ended.repairs, *launch.repairs]
        if ended.repairs:
            repairs = [*keep_replaced(command.policy.aside, repairs)]
        return _CommandEnd(ended, time.monotonic() - started, repairs, hidden)

    async def _find_hidden(self, command: _Command) -> WorkspaceSecrets:
        """What is to be hidden from a command; that it cannot be is an error. A job that may read
        the secrets may not move the folders above them: others run beside it."""
        is_job = bool(command.output.job)
        if self.isolation.kind != "bubblewrap" or (command.approved and not is_job):
            return WorkspaceSecrets()
        # in a thread: a large workspace takes a while to be looked through
        found = await asyncio.to_thread(find_hidden, command.policy.roots, self._shown)
        if command.approved:
            return found._replace(paths=(), complete=True)
        if not found.complete:
            raise CommandRefused(explain_incomplete(found))
        return found

    async def _report(self, command: _Command, ended: _CommandEnd) -> CommandResult:
        (code, survivors, _), isolation = ended.process, self.isolation
        if code is None:
            status, longest = "timed out", self._limits.max_timeout
            notes = [f"ended by the time limit of {command.limit:g} s"]
            notes.append(f"give a longer timeout (at most {longest:g}) or background=true")
        else:
            status = f"exit {code}"
            notes = [f"exit code {code}{_signal_name(code)} after {ended.seconds:.1f} s"]
        if not self._introduced:
            self._introduced = True
            notes += [
                isolation.description,
                *isolation.limitations,
                *filter(None, (isolation.remedy,)),
            ]
        if code != 0 and isolation.kind != "none":
            notes.append(f"{isolation.kind} sandbox{'' if self._network else ', no network'}")
        if survivors:
            notes.append(f"could not be ended: processes {', '.join(map(str, survivors[:20]))}")
        said = await command.output.report(ended=True)
        roots, failed = command.policy.roots, code != 0
        if note := self._hidden_notes.note(ended.hidden, roots, said, failed=failed):
            notes.append(note)
        warnings = "".join(f"\n[{line}]" for line in ended.repairs)
        text = f"{said}\n[{'; '.join(notes)}]{warnings}"
        return CommandResult(text=text, is_error=code != 0 or bool(warnings), status=status)


def _remove_folder(folder: Path) -> None:
    remove_covers(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _command_words(command: str) -> tuple[str, ...]:
    try:
        line = command.encode("utf-8")
    except UnicodeEncodeError:
        raise CommandRefused("the command is not valid Unicode text; write it again") from None
    if not line.strip():
        raise CommandRefused("the command is empty; write what to run")
    if b"\x00" in line:
        raise CommandRefused("a command cannot have a NUL character; write it as \\0 inside quotes")
    if len(line) > MAX_COMMAND_BYTES:
        raise CommandRefused(
            f"the command has {len(line):,} bytes, the limit is {MAX_COMMAND_BYTES:,}; "
            "write a script with write_file and run that"
        )
    bash = shutil.which("bash", path=PROGRAM_PATH)
    options = ("--noprofile", "--norc") if bash else ()
    # without `--` a command that begins with a hyphen would be taken for an option
    return (bash or "/bin/sh", *options, "-c", "--", command)


def _resolve_directory(policy: SandboxPolicy, given: str) -> str:
    if "\x00" in given or len(given) > 4096:
        raise CommandRefused("the directory is not a path; give a folder in the workspace")
    try:
        real = os.path.realpath(Path(policy.roots[0], given))
        usable = Path(real).is_dir()
    except (OSError, ValueError) as error:
        raise CommandRefused(f"the directory cannot be used: {type(error).__name__}") from None
    if not any(Path(real).is_relative_to(root) for root in policy.roots):
        raise CommandRefused(f"{given[:200]!r} is outside the workspace; give a folder inside it")
    if not usable:
        raise CommandRefused(
            f"there is no folder {given[:200]!r}; list_directory shows what there is"
        )
    return real


def _signal_name(code: int) -> str:
    number = -code if code < 0 else code - 128
    with suppress(ValueError):
        return f" ({signal.Signals(number).name})" if number > 0 else ""
    return ""
