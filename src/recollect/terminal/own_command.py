"""Runs a command line of the user's own, and tells what it writes."""

from __future__ import annotations

from collections.abc import Callable

from recollect.entries import Message
from recollect.runtime.prompt_run import ActiveSession
from recollect.terminal.terminal_events import ShellFinished, ShellOutput, TerminalEvent


async def run_own_command(
    active: ActiveSession, line: str, notify: Callable[[TerminalEvent], None]
) -> ShellFinished:
    # late: few sessions run one, and the first screen shall not wait for it
    from recollect.runtime.user_command import run_user_command

    folder = active.runtime.folders.cwd
    entry = await run_user_command(
        active.session, line, folder, lambda text: notify(ShellOutput(text))
    )
    assert isinstance(entry.body, Message)
    return ShellFinished(entry.body, entry.id)
