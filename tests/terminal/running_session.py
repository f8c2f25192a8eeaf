"""A `SessionRunner` against a local provider, and text commands typed into it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from recollect.runtime.permission_policy import ApprovalAnswer
from recollect.terminal.command_table import run_command
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import parse_command
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_events import (
    ApprovalAsked,
    NoticeGiven,
    TerminalEvent,
)
from tests.cli.provider import ENV
from tests.cli.runner import Cli, surroundings

PATIENCE = 30.0  # seconds


class RunningSession:
    def __init__(self, options: StartOptions) -> None:
        self.events: list[TerminalEvent] = []
        self.runner = SessionRunner(options, self._told)
        self.answer = ApprovalAnswer(allowed=True)

    def _told(self, event: TerminalEvent) -> None:
        self.events.append(event)
        if isinstance(event, ApprovalAsked):
            event.answer.set_result(self.answer)

    @property
    def notices(self) -> str:
        return "\n".join(event.text for event in self.events if isinstance(event, NoticeGiven))

    async def say(self, text: str) -> bool:
        """Send a prompt; whether it ran to its end."""
        sent = self.runner.send(text)
        ended = await asyncio.wait_for(self.runner.wait_for_end(sent), PATIENCE)
        await self.settle()
        return ended

    async def type(self, line: str) -> str:
        command = parse_command(line)
        assert command is not None, line
        return await asyncio.wait_for(run_command(self.runner, *command), PATIENCE)

    async def settle(self) -> None:
        while self.runner.busy or self.runner.waiting:
            await asyncio.sleep(0.005)


@asynccontextmanager
async def _running(options: StartOptions) -> AsyncIterator[RunningSession]:
    session = RunningSession(options)
    serving = asyncio.create_task(session.runner.run())
    await session.runner.opened()
    try:
        yield session
    finally:
        session.runner.close()
        await serving


def play(
    cli: Cli,
    work: Callable[[RunningSession], Awaitable[None]],
    options: StartOptions = StartOptions(),  # noqa: B008 - a frozen value
) -> None:
    """Run this work in a session of the project's folder."""

    async def run() -> None:
        async with _running(options) as session:
            await work(session)

    with surroundings(cli.env(ENV), cli.project):
        asyncio.run(run())
