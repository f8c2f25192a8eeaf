"""A workspace on which commands run, and what is needed to look at them from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from recollect.entries import Note, Text, json_text
from recollect.execution.command_runner import CommandRunner
from recollect.execution.sandbox import (
    Isolation,
    find_isolation,
    landlock_isolation,
    no_isolation,
)
from recollect.store.output_notes import output_part
from recollect.tools.builtin import shell_tools
from recollect.tools.tool import ToolContext, ToolOutput

PATIENCE = 60.0  # seconds for what takes none on a machine with nothing else to do
MISSING = {
    "bubblewrap": "bubblewrap is not installed; `apt-get install bubblewrap`",
    "landlock": "this kernel has no Landlock",
}
BARE = no_isolation("for a test")


def isolation_of(kind: str) -> Isolation:
    found = find_isolation()
    if found.kind != kind and kind != "bubblewrap":
        found = landlock_isolation() if kind == "landlock" else BARE
    if found.kind != kind:
        refused = "bubblewrap refuses" in found.description
        pytest.skip(found.description if refused else MISSING[kind])
    return found


class Bench:
    """A workspace with a folder in it, and the tools on it."""

    def __init__(self, root: Path, isolation: Isolation, **options: Any) -> None:
        (root / "sub").mkdir(parents=True, exist_ok=True)
        self.root, self.heard = root, list[str]()
        self.commands = CommandRunner(isolation=isolation, **options)
        self.run_tool, self.read_tool, self.end_tool = shell_tools(lambda: self.commands)
        self.notes = list[Note]()
        self.context = ToolContext(
            roots=(root,), tell=self.heard.append, call="call", note=self._append
        )

    async def _append(self, note: Note) -> str:
        self.notes.append(note)
        return f"{len(self.notes):032x}"

    def printed(self) -> bytes:
        """What the log has of the outputs, as it came."""
        texts = [note.text for note in self.notes if output_part(note) is not None]
        return "".join(texts).encode("utf-8", "surrogateescape")

    async def run(self, command: str, **arguments: object) -> ToolOutput:
        return await self.run_tool(json_text({"command": command, **arguments}), self.context)

    async def read(self, job: str = "") -> str:
        return words(await self.read_tool(json_text({"job": job}), self.context))

    async def read_until(self, job: str, text: str) -> str:
        """What a job has written, as soon as this text is in it."""
        async with asyncio.timeout(PATIENCE):
            while text not in (said := await self.read(job)):
                await asyncio.sleep(0.02)
        return said

    async def end(self, job: str) -> str:
        return words(await self.end_tool(json_text({"job": job}), self.context))


def words(output: ToolOutput) -> str:
    return "".join(part.text for part in output.content if isinstance(part, Text))


async def run_to_the_limit(bench: Bench, line: str, shows: str = "", **more: object) -> ToolOutput:
    """Run a command to its time limit, which grows until it had the time to show what it does."""
    seconds = 0.5
    while True:
        ended = await bench.run(line, timeout=seconds, **more)
        if ended.status != "timed out" or shows in words(ended) or seconds > PATIENCE:
            return ended
        seconds *= 4


Steps = Callable[[Bench], Coroutine[Any, Any, None]]


def on_bench(root: Path, isolation: Isolation, steps: Steps, **options: Any) -> None:
    async def carry_out() -> None:
        bench = Bench(root / "work", isolation, **options)
        try:
            await steps(bench)
        finally:
            await bench.commands.close()

    asyncio.run(carry_out())


def alive(word: str) -> list[int]:
    """Processes with this word on their command line, wherever they run."""
    found = []
    for process in psutil.process_iter():
        try:
            if word in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def wait_until(holds: Callable[[], object]) -> bool:
    """Whether it holds, in the end."""
    until = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return bool(holds())


def gone(word: str) -> bool:
    return wait_until(lambda: not alive(word))


def said(root: Path, isolation: Isolation, command: str, **options: object) -> str:
    found = []

    async def steps(bench: Bench) -> None:
        found.append(words(await bench.run(command)))

    on_bench(root, isolation, steps, **options)
    return found[0]
