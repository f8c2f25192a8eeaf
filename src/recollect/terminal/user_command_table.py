"""The user's own commands beside the program's: found, expanded and sent as prompts, for both
doors.

The files are read again for each use, so that a changed file counts at once. A project's commands
count where its memory is trusted.
"""

from __future__ import annotations

import asyncio

from recollect.runtime.runtime import Runtime
from recollect.settings import data_directory
from recollect.terminal.model_commands import check_prompt
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import (
    SlashCommand,
    builtin_names,
    find_builtin,
    find_command,
)
from recollect.workspace.effective_settings import PROJECT_FOLDER
from recollect.workspace.sent_files import Attachable
from recollect.workspace.trusted_folders import is_trusted
from recollect.workspace.user_commands import UserCommands, expand_command, read_user_commands


async def load_user_commands(runtime: Runtime) -> UserCommands:
    return await asyncio.to_thread(_read, runtime)


def _read(runtime: Runtime) -> UserCommands:
    root = runtime.folders.root
    project = root / PROJECT_FOLDER if is_trusted(root) else None
    home = data_directory()
    if project is not None and project.resolve() == home.resolve():
        project = None  # the data directory is the project's own folder
    return read_user_commands(home, project, builtin_names())


def command_rows(found: UserCommands) -> tuple[SlashCommand, ...]:
    """The user's commands as rows of the table, for completion and lists."""
    return tuple(
        SlashCommand(one.name, one.description, one.argument_hint) for one in found.commands
    )


async def send_user_command(
    runner: SessionRunner, name: str, arguments: str, attachments: tuple[Attachable, ...] = ()
) -> bool:
    """Send the text of a command of the user's; False if the program has this command. An unknown
    name raises, and suggests the nearest of all."""
    if find_builtin(name) is not None:
        return False
    found = await load_user_commands(await runner.opened())
    command = found.find(name)
    if command is None:
        find_command(name, [one.name for one in found.commands])
        return False
    text = expand_command(command, arguments)
    if attachments:
        await check_prompt(runner, text, attachments, command.model)
    runner.send(text, attachments, model=command.model)
    return True
