"""What each command of the terminal program does, in text, for every door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from recollect.terminal import context_commands
from recollect.terminal.command_help import show_help
from recollect.terminal.history_commands import (
    fork_session,
    print_tree,
    rename_session,
    rewind_in_text,
)
from recollect.terminal.init_command import run_init
from recollect.terminal.model_commands import run_model, show_tools
from recollect.terminal.session_list_commands import export, import_files, resume
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.settings_commands import run_settings, run_theme
from recollect.terminal.slash_commands import find_command
from recollect.terminal.stats_commands import copy_reply, show_stats
from recollect.terminal.trust_commands import run_trust, show_hooks
from recollect.terminal.user_command_table import send_user_command
from recollect.terminal.workspace_commands import run_directory, run_memory, run_permissions
from recollect.workspace.sent_files import Attachable

TextCommand: TypeAlias = Callable[[SessionRunner, str], Awaitable[str]]


async def _new(runner: SessionRunner, arguments: str) -> str:
    del arguments
    runner.open(None)
    return ""


async def _quit(runner: SessionRunner, arguments: str) -> str:
    del arguments
    runner.close()
    return ""


TEXT_COMMANDS: dict[str, TextCommand] = {
    "rename": rename_session,
    "fork": fork_session,
    "rewind": rewind_in_text,
    "tree": print_tree,
    "help": show_help,
    "new": _new,
    "memory": run_memory,
    "directory": run_directory,
    "model": run_model,
    "tools": show_tools,
    "permissions": run_permissions,
    "trust": run_trust,
    "hooks": show_hooks,
    "stats": show_stats,
    "copy": copy_reply,
    "init": run_init,
    "theme": run_theme,
    "settings": run_settings,
    "quit": _quit,
    "resume": resume,
    "import": import_files,
    "export": export,
    "context": context_commands.show_context,
    "compact": context_commands.compact_session,
    "pin": context_commands.pin_entry,
    "drop": context_commands.drop_entry,
    "restore": context_commands.restore_entry,
    "recall": context_commands.recall_entry,
    "search": context_commands.search_entries,
}


async def run_command(
    runner: SessionRunner, name: str, arguments: str, attachments: tuple[Attachable, ...] = ()
) -> str:
    """What to tell the user; empty: what happens is shown otherwise. The files go with a command of
    the user's own, which becomes a prompt."""
    if await send_user_command(runner, name, arguments, attachments):
        return ""
    command = find_command(name)
    work = TEXT_COMMANDS.get(command.name)
    if work is None:
        return f"/{command.name} is not there yet"
    return await work(runner, arguments)
