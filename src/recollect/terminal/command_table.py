"""What each command of the terminal program does, in text, for every door."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from recollect.terminal import context_commands
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import COMMANDS, find_command

TextCommand: TypeAlias = Callable[[SessionRunner, str], Awaitable[str]]


async def _help(runner: SessionRunner, arguments: str) -> str:
    del runner, arguments
    rows = [f"/{one.name} {one.arguments}".rstrip().ljust(34) + one.help for one in COMMANDS]
    return "\n".join(rows)


async def _new(runner: SessionRunner, arguments: str) -> str:
    del arguments
    runner.open(None)
    return ""


async def _quit(runner: SessionRunner, arguments: str) -> str:
    del arguments
    runner.close()
    return ""


TEXT_COMMANDS: dict[str, TextCommand] = {
    "help": _help,
    "new": _new,
    "quit": _quit,
    "context": context_commands.show_context,
    "compact": context_commands.compact_session,
    "pin": context_commands.pin_entry,
    "drop": context_commands.drop_entry,
    "restore": context_commands.restore_entry,
    "recall": context_commands.recall_entry,
    "search": context_commands.search_entries,
}


async def run_command(runner: SessionRunner, name: str, arguments: str) -> str:
    """What to tell the user; empty: what happens is shown otherwise."""
    command = find_command(name)
    work = TEXT_COMMANDS.get(command.name)
    if work is None:
        return f"/{command.name} is not there yet"
    return await work(runner, arguments)
