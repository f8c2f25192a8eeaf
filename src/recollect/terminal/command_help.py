"""`/help`: the commands in groups, one of them with examples, the user's own, and where keys are
listed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from recollect.display.display_text import one_line, truncate
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.slash_commands import (
    ANSWER_WIDTH,
    COMMANDS,
    SlashCommand,
    find_builtin,
    find_command,
)
from recollect.terminal.user_command_table import command_rows, load_user_commands
from recollect.workspace.user_commands import UserCommand, UserCommands

_INDENT = 24
GROUPS: dict[str, tuple[str, ...]] = {
    "Sessions": ("new", "resume", "rename", "fork", "rewind", "tree", "search", "export", "import"),
    "What the model sees": ("context", "compact", "pin", "drop", "restore", "recall"),
    "This folder": ("memory", "init", "directory", "trust", "hooks", "permissions"),
    "Model and program": ("model", "tools", "stats", "copy", "theme", "settings", "help", "quit"),
}
EXAMPLES: dict[str, tuple[str, ...]] = {
    "help": ("/help memory",),
    "resume": ("/resume", "/resume 0199a2"),
    "rename": ("/rename The parser's errors",),
    "fork": ("/fork", "/fork try it without a cache"),
    "compact": ("/compact", "/compact keep every decision about the schema"),
    "pin": ("/pin 0199a2b4",),
    "drop": ("/drop 0199a2b4",),
    "restore": ("/restore 0199a2b4",),
    "recall": ("/recall 0199a2b4",),
    "search": ("/search timeout retry",),
    "memory": ("/memory", "/memory list", "/memory add We use tabs.", "/memory refresh"),
    "directory": ("/directory", "/directory add ../other-project"),
    "model": ("/model", "/model gpt-5-mini", "/model ollama/qwen3:8b"),
    "permissions": ("/permissions", "/permissions edit"),
    "trust": ("/trust", "/trust memory", "/trust all"),
    "export": ("/export", "/export talk.md"),
    "import": ("/import ~/talk.jsonl",),
    "copy": ("/copy", "/copy 2"),
    "init": ("/init", "/init write"),
    "theme": ("/theme", "/theme light"),
    "settings": ("/settings", "/settings context", "/settings agent.max_turns 50"),
}


async def show_help(runner: SessionRunner, arguments: str) -> str:
    found = await load_user_commands(await runner.opened())
    if not arguments:
        return "\n".join(_all_lines(found))
    name = arguments.removeprefix("/").lower()
    own = found.find(name) if find_builtin(name) is None else None
    if own is not None:
        return "\n".join(_own_lines(own))
    command = find_command(name, [one.name for one in found.commands])
    return "\n".join(_command_lines(command))


def _all_lines(found: UserCommands) -> Iterator[str]:
    rows = {one.name: one for one in COMMANDS}
    for title, names in GROUPS.items():
        yield f"{title}:"
        for name in names:
            yield from _row(rows[name])
        yield ""
    yield "Yours, from commands/*.md beside your settings and in .recollect/:"
    for one in command_rows(found):
        yield from _row(one)
    if not found.commands:
        yield "  none yet"
    for problem in found.problems:
        yield from _wrapped(f"not read: {problem}", 2)
    yield ""
    yield "/help COMMAND has its other names and examples. On the screen F1 lists"
    yield "the keys. Text without / is a prompt, @path adds a file. //x sends /x."


def _row(command: SlashCommand) -> Iterator[str]:
    call = truncate("  " + one_line(f"/{command.name} {command.arguments}"), ANSWER_WIDTH)
    meaning = textwrap.wrap(one_line(command.help), ANSWER_WIDTH - _INDENT) or [""]
    if len(call) < _INDENT - 1:
        yield f"{call:<{_INDENT}}{meaning[0]}".rstrip()
        meaning = meaning[1:]
    else:
        yield call
    yield from (" " * _INDENT + line for line in meaning)


def _command_lines(command: SlashCommand) -> Iterator[str]:
    yield f"/{command.name} {command.arguments}".rstrip()
    yield from _wrapped(command.help, 2)
    if command.aliases:
        yield "  also: " + ", ".join(f"/{alias}" for alias in command.aliases)
    if examples := EXAMPLES.get(command.name):
        yield "  examples:"
        yield from (f"    {example}" for example in examples)


def _own_lines(command: UserCommand) -> Iterator[str]:
    yield one_line(f"/{command.name} {command.argument_hint}")
    yield from _wrapped(command.description, 2)
    yield from _wrapped(f"from {command.path}", 2)
    if command.model:
        yield f"  answered by {one_line(command.model)}"
    for note in command.notes:
        yield from _wrapped(note, 2)


def _wrapped(text: str, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        one_line(text), ANSWER_WIDTH, initial_indent=space, subsequent_indent=space + "  "
    )
