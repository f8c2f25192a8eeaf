"""Runs a command line that the user typed, and puts it with its output into the session.

It is the user's own command: it has the user's environment and the user's rights, no sandbox, and
needs no permission. Its output is bounded and recorded like that of a tool; a command that is
interrupted is in the session with what it had written. All its processes end with it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from recollect.entries import Entry, Message, Note, Text
from recollect.errors import RecollectError
from recollect.execution.command_output import OutputCapture, OutputRelay
from recollect.execution.command_plan import CommandPlan, CommandReport
from recollect.execution.output_recorder import OutputRecorder
from recollect.execution.process import prepare_start, run_process
from recollect.runtime.project_prompts import RAN
from recollect.session import Session
from recollect.settings import data_directory
from recollect.store.ids import new_id
from recollect.store.output_notes import OutputLog

USER_SHELL = "user_shell"  # in the place of a tool's name, in the notes with its output
MAX_SECONDS = 86_400.0
MAX_LINE = 100_000  # bytes; the system takes 131,071 in one word


class CannotRun(RecollectError):
    """A command line that cannot be run: the fact, then the remedy."""


async def run_user_command(
    session: Session, line: str, folder: Path, relay: Callable[[str], None]
) -> Entry:
    """The message that was appended; `relay` gets the output while the command runs."""
    plan = CommandPlan(_words(line), dict(os.environ), str(folder))

    async def append(note: Note) -> str:
        return (await session.append(note))[0].id

    capture = OutputCapture(data_directory())
    output = OutputRecorder(capture, OutputLog(append, new_id(), USER_SHELL))
    prepare_start()
    try:
        ended = await run_process(plan, MAX_SECONDS, capture, OutputRelay(relay))
    except asyncio.CancelledError:
        # in a task of its own: what was written is kept however often the user interrupts
        await asyncio.shield(_append(session, line, output, "interrupted"))
        raise
    except OSError as error:
        raise CannotRun(f"the command cannot be run: {error.strerror or error}") from None
    return await _append(session, line, output, _describe_end(ended))


async def _append(session: Session, line: str, output: OutputRecorder, end: str) -> Entry:
    said = await output.report(ended=True)
    output.capture.close()
    text = f"{RAN}{line}\n{said}\n[{end}]"
    return (await session.append(Message(role="user", parts=(Text(text),))))[0]


def _describe_end(ended: CommandReport) -> str:
    end = "ended by the time limit" if ended.code is None else f"exit code {ended.code}"
    if ended.survivors:
        end += f"; could not be ended: processes {', '.join(map(str, ended.survivors[:20]))}"
    return end


def _words(line: str) -> tuple[str, ...]:
    try:
        data = line.encode("utf-8")
    except UnicodeEncodeError:
        raise CannotRun("the command is not valid Unicode text; write it again") from None
    if not line.strip() or b"\x00" in data:
        raise CannotRun("there is no command after the !; write what to run")
    if len(data) > MAX_LINE:
        raise CannotRun(f"the command has {len(data):,} bytes; the limit is {MAX_LINE:,}")
    shell = os.environ.get("SHELL", "")
    # other shells may not take a line in this way, so that a script would behave differently
    known = Path(shell).name in ("bash", "zsh", "sh", "dash", "ksh", "fish")
    return (shell if known and os.access(shell, os.X_OK) else "/bin/sh", "-c", line)
