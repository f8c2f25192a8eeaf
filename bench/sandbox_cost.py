"""What one command costs in each sandbox, beside what it is made of: medians of one run.

Bare bash, bare Python (as our supervisor starts), and bare bubblewrap with the options that
recollect uses are measured in turn with the sandboxes, so that a busy machine slows them alike.
Processor time is that of recollect and of all processes below it.

.venv/bin/python bench/sandbox_cost.py [commands] [folder]
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil

from recollect.execution.command_runner import CommandRunner
from recollect.execution.sandbox import Isolation, SandboxChoice, find_isolation
from recollect.store.output_notes import OutputLog
from recollect.workspace.workspace_secrets import ShownSecrets

KINDS: tuple[SandboxChoice, ...] = ("none", "landlock", "bubblewrap")
ME = psutil.Process()
BATCH = 5  # processor time is counted in hundredths of a second
LINE = ("/bin/bash", "-c", "true")
BUBBLEWRAP = (
    *("--unshare-pid", "--unshare-ipc", "--unshare-net", "--die-with-parent", "--new-session"),
    *("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--"),
)


async def discard(_: object) -> str:
    return ""


def run_bare(words: tuple[str, ...]) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        subprocess.run(words, check=True)

    return run


def run_sandboxed(runner: CommandRunner, folder: Path) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        log = OutputLog(discard, "call", recallable=False)
        ran = await runner.run("true", (folder,), "", 0, lambda _: None, log, background=False)
        assert ran.status == "exit 0", ran.text

    return run


def describe(found: Isolation) -> tuple[str, ...]:
    return (found.program, *found.options, *BUBBLEWRAP, *LINE)


def processor_time() -> float:
    """Of this process, of the fork server below it, and of all that either has waited for."""
    return sum(sum(item.cpu_times()[:4]) for item in (ME, *ME.children()))


async def measure(folder: Path, count: int) -> None:
    found = {kind: find_isolation(kind) for kind in KINDS}
    runners: dict[str, CommandRunner] = {
        kind: CommandRunner(sandbox=kind) for kind, item in found.items() if item.kind == kind
    }
    if "bubblewrap" in runners:  # what it costs to look for the workspace's secrets
        runners["secrets shown"] = CommandRunner(sandbox="bubblewrap", shown=ShownSecrets((".",)))
    ways = {"bare bash": run_bare(LINE)}
    python = os.path.realpath(sys.executable)
    ways["bare python"] = run_bare((python, "-I", "-S", "-c", "pass"))
    if "bubblewrap" in runners:
        ways["bare bubblewrap"] = run_bare(describe(found["bubblewrap"]))
    ways |= {kind: run_sandboxed(runner, folder) for kind, runner in runners.items()}
    for kind in runners:  # the first command of a process
        started = time.perf_counter()
        await ways[kind]()
        print(f"first, {kind:13} {(time.perf_counter() - started) * 1e3:6.1f} ms")
    times: dict[str, list[float]] = {name: [] for name in ways}
    spent = dict.fromkeys(ways, 0.0)
    for _ in range(count):
        for name, run in ways.items():
            before, started = processor_time(), time.perf_counter()
            for _ in range(BATCH):
                await run()
            times[name].append((time.perf_counter() - started) * 1e3 / BATCH)
            spent[name] += (processor_time() - before) * 1e3 / BATCH
    for name, took in times.items():
        took.sort()
        low, high = took[count // 10], took[count * 9 // 10]
        wall = f"{statistics.median(took):6.1f} ms ({low:.1f} to {high:.1f})"
        print(f"{name:16} {wall:28} {spent[name] / count:6.1f} ms of processor time")
    for runner in runners.values():
        await runner.close()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(measure(Path(sys.argv[2] if len(sys.argv) > 2 else made), count))


if __name__ == "__main__":
    main()
