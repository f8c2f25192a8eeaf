"""A workspace on which commands run, and what is needed to look at them from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psutil
import pytest

from recollect.entries import Text, json_text
from recollect.execution.command_runner import CommandRunner
from recollect.execution.sandbox import Isolation, find_isolation, landlock_isolation, no_isolation
from recollect.tools.builtin import shell_tools
from recollect.tools.tool import ToolContext, ToolOutput


def isolation_of(kind: str) -> Isolation:
    found = find_isolation()
    if kind != found.kind:
        found = landlock_isolation() if kind == "landlock" else no_isolation("for a test")
    if found.kind != kind:
        pytest.skip(f"{kind} is not to be had here: {find_isolation().words}")
    return found


class Bench:
    """A workspace with a folder in it, and the tools on it."""

    def __init__(self, root: Path, isolation: Isolation, **options: Any) -> None:
        (root / "sub").mkdir(parents=True, exist_ok=True)
        self.root, self.heard = root, list[str]()
        self.commands = CommandRunner(isolation=isolation, **options)
        self.run_tool, self.read_tool, self.end_tool = shell_tools(lambda: self.commands)
        self.place = ToolContext(roots=(root,), tell=self.heard.append)

    async def run(self, command: str, **arguments: object) -> ToolOutput:
        return await self.run_tool(json_text({"command": command, **arguments}), self.place)

    async def read(self, job: str = "") -> str:
        return words(await self.read_tool(json_text({"job": job}), self.place))

    async def end(self, job: str) -> str:
        return words(await self.end_tool(json_text({"job": job}), self.place))


def words(outcome: ToolOutput) -> str:
    return "".join(part.text for part in outcome.content if isinstance(part, Text))


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
    """Processes with this word on their line, wherever they run."""
    found = []
    for process in psutil.process_iter():
        try:
            if word in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def gone(word: str, within: float = 2.0) -> bool:
    until = time.monotonic() + within
    while alive(word) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(word)


def said(root: Path, isolation: Isolation, command: str, **options: object) -> str:
    found = []

    async def steps(bench: Bench) -> None:
        found.append(words(await bench.run(command)))

    on_bench(root, isolation, steps, **options)
    return found[0]


BARE = no_isolation("for a test")
