"""The commands of the terminal program, by one table for the screen and the line-based program.

A row has a command's name, its other names, its arguments and what it does. What carries it out is
registered beside it: `text` answers with lines and works everywhere; the screen opens a view of its
own for some.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import msgspec

from recollect.errors import RecollectError

ANSWER_WIDTH = 74  # columns: 80, less what the screen's margins and its scroll bar take


class SlashCommand(msgspec.Struct, frozen=True):
    name: str
    help: str
    arguments: str = ""
    aliases: tuple[str, ...] = ()


COMMANDS = (
    SlashCommand("help", "what can be typed here, and all keys", "[COMMAND]"),
    SlashCommand("new", "begin a new session; this one is kept", aliases=("clear",)),
    SlashCommand("resume", "go to another session", "[ID]", ("sessions", "chat")),
    SlashCommand("rename", "give this session another title", "TITLE"),
    SlashCommand("fork", "go on in a copy of this session", "[TITLE]"),
    SlashCommand(
        "rewind", "go back to an earlier prompt or call", "[N [files|both] [yes]]", ("undo",)
    ),
    SlashCommand("tree", "every branch of this session", ""),
    SlashCommand("context", "what the model sees, and what not"),
    SlashCommand(
        "compact", "replace the older part with a snapshot", "[INSTRUCTIONS | undo]", ("compress",)
    ),
    SlashCommand("pin", "keep an entry in sight", "ENTRY"),
    SlashCommand("drop", "leave an entry out of what the model sees", "ENTRY"),
    SlashCommand("restore", "undo what left an entry out", "ENTRY"),
    SlashCommand("recall", "show all of an entry", "ENTRY"),
    SlashCommand("search", "find entries by their words", "WORDS [--all]"),
    SlashCommand("memory", "what every session here is told", "show|list|add TEXT|refresh"),
    SlashCommand("directory", "the folders to work in", "show|add DIR", ("dir",)),
    SlashCommand("model", "which model answers", "[NAME]"),
    SlashCommand("tools", "what the model may call"),
    SlashCommand("permissions", "what may run without a question", "[MODE]"),
    SlashCommand(
        "trust",
        "whether this folder's memory, settings and hooks count",
        "[memory|settings|hooks|all]",
    ),
    SlashCommand("hooks", "what runs at which event"),
    SlashCommand("stats", "tokens, cost and time of this session", aliases=("cost",)),
    SlashCommand("export", "write this session as a file", "[FILE] [--format FORMAT]"),
    SlashCommand("import", "read another program's session file", "FILE|DIR"),
    SlashCommand("copy", "copy the last answer, or a code block of it", "[N]"),
    SlashCommand("init", "let the model draft AGENTS.md, which you write", "[write]"),
    SlashCommand("theme", "other colours", "[NAME]"),
    SlashCommand("settings", "every setting and where it comes from", "[KEY [VALUE]]"),
    SlashCommand("quit", "leave; the command to come back is printed", aliases=("exit",)),
)
_BY_NAME = {name: one for one in COMMANDS for name in (one.name, *one.aliases)}


class UnknownCommand(RecollectError):
    def __init__(self, name: str, near: str) -> None:
        hint = f"did you mean /{near}?" if near else "/help lists the commands"
        super().__init__(f"there is no command /{name}; {hint}")
        self.name, self.near = name, near


def parse_command(text: str) -> tuple[str, str] | None:
    """The name and the arguments of a line that is a command; None if it is a prompt. A path such
    as `/etc/hosts` and a line that begins with two slashes are prompts."""
    if not text.startswith("/") or text.startswith("//"):
        return None
    name, *rest = text[1:].split(None, 1) or [""]
    if "/" in name or not text.startswith(f"/{name}") or not name:
        return None
    return name.lower(), rest[0].strip() if rest else ""


def find_builtin(name: str) -> SlashCommand | None:
    """The program's own command with this name; None: it may be one of the user's."""
    return _BY_NAME.get(name)


def find_command(name: str, others: Iterable[str] = ()) -> SlashCommand:
    """The command with this name or alias; an unknown one suggests the nearest, also of `others`,
    which are the user's."""
    found = _BY_NAME.get(name)
    if found is None:
        near = get_close_matches(name, (*_BY_NAME, *others), n=1, cutoff=0.5)
        raise UnknownCommand(name, near[0] if near else "")
    return found


def builtin_names() -> tuple[str, ...]:
    """Every name and alias, which no command of the user's can have."""
    return tuple(_BY_NAME)
