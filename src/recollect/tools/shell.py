"""The shell tools: a command line, or a job in the background, handed to a `CommandRunner`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from recollect.entries import Text
from recollect.execution.command_runner import (
    CommandRefused,
    CommandRequest,
    CommandResult,
    CommandRunner,
)
from recollect.tools.tool import ToolContext, ToolFailed, ToolOutput


async def run_command(
    runner: CommandRunner,
    command: str,
    directory: str,
    timeout: float,
    background: bool,  # noqa: FBT001 - the model's own parameter
    context: ToolContext,
) -> ToolOutput:
    request = CommandRequest(
        command=command,
        roots=context.roots,
        directory=directory,
        timeout=timeout,
        relay=context.tell,
    )
    with _refusals_as_failures():
        return _output(await (runner.start_job if background else runner.run)(request))


async def read_job(runner: CommandRunner, job: str) -> str | ToolOutput:
    if not job:
        return runner.list_jobs()
    with _refusals_as_failures():
        return _output(runner.read_job(job))


async def end_job(runner: CommandRunner, job: str) -> ToolOutput:
    with _refusals_as_failures():
        return _output(await runner.end_job(job))


def _output(result: CommandResult) -> ToolOutput:
    content = (Text(text=result.text),)
    return ToolOutput(content=content, is_error=result.is_error, status=result.status)


@contextmanager
def _refusals_as_failures() -> Iterator[None]:
    try:
        yield
    except CommandRefused as refused:
        raise ToolFailed(str(refused)) from None
