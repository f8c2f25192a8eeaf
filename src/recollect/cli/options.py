"""What commands share: options, examples in their help, and prompts from arguments or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])
COMPLETE = "_RECOLLECT_COMPLETE"  # set by a completion script
MAX_PROMPT = 20_000_000  # characters
PICK = "?"  # `-r` without an ID: let the user choose
NO_SYSTEM = (
    "--system is for a new session: a session keeps the instructions that it began with. "
    "Leave out --system, or start a new session."
)


class StoreType(click.Path):
    """The path of a file, or the URL of a database."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        is_url = isinstance(value, str) and "://" in value
        return value if is_url else super().convert(value, param, ctx)


store_option = click.option(
    "--store",
    "file",
    metavar="FILE|URL",
    type=StoreType(),
    help="Use this store instead of your own.",
)
deny_option = click.option(
    "--deny", metavar="RULE", multiple=True, help="Never run these commands."
)
show_secret_option = click.option(
    "--show-secret",
    "show_secrets",
    metavar="NAME",
    multiple=True,
    help="Let commands and tools read this secret of the workspace, such as .env.test.",
)
attach_option = click.option(
    "--attach",
    "attachments",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Send this file along: a text, an image or a PDF.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document on stdout."
)


def complete_session(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """The ids of this project's sessions, with their titles."""
    # late: only a shell that completes a word needs it
    from recollect.cli.session_completion import session_items

    return session_items(ctx, typed)


def looks_like_id(word: str) -> bool:
    return len(word) >= 6 and not word.lower().strip("0123456789abcdef-")


def json_and_store_options(command: F) -> F:
    return json_option(store_option(command))


def command(
    *lines: tuple[str, str], name: str | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command whose help ends with these examples."""
    return click.command(name, epilog=examples(*lines))


def examples(*lines: tuple[str, str]) -> str:
    """An Examples section: commands and their purposes, in two columns."""
    width = max(len(command) for command, _ in lines)
    shown = (f"  {command.ljust(width)}  {purpose}".rstrip() for command, purpose in lines)
    return "\b\nExamples:\n" + "\n".join(shown)


def read_piped() -> str:
    """What is piped in; nothing from a terminal."""
    return "" if sys.stdin.isatty() else sys.stdin.read(MAX_PROMPT + 1)


def read_prompt(words: tuple[str, ...]) -> str:
    """The arguments followed by piped input; `-` alone means the piped input."""
    typed = " ".join(words).strip()
    piped = sys.stdin.read(MAX_PROMPT + 1) if typed == "-" else read_piped()
    typed = "" if typed == "-" else typed
    prompt = "\n\n".join(filter(None, (typed, piped.strip("\n"))))
    if len(prompt) > MAX_PROMPT:
        raise click.UsageError(f"The prompt is longer than {MAX_PROMPT:,} characters.")
    if not prompt.strip():
        raise click.UsageError("A prompt is missing; give it as an argument or pipe it in.")
    return prompt
