"""What the commands have in common: options, the Examples section of a help text, dates, and what a
person asks, in words or through a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
MAX_PROMPT = 20_000_000  # characters of a question


def store_option(command: F) -> F:
    return click.option(
        "--store",
        "file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The store to use instead of your own.",
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(
        command
    )


def examples(*lines: tuple[str, str]) -> str:
    """An Examples section: a command and what it is for, in two columns."""
    width = max(len(command) for command, _ in lines)
    shown = (f"  {command.ljust(width)}  {purpose}".rstrip() for command, purpose in lines)
    return "\b\nExamples:\n" + "\n".join(shown)


class DateParam(click.ParamType[int]):
    """A point in time, as `recollect.cli.dates.parse` reads it; milliseconds since 1970."""

    name = "date"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        from recollect.cli.dates import parse_date

        if isinstance(value, int):
            return value
        try:
            return parse_date(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def read_prompt(words: tuple[str, ...]) -> str:
    """The arguments, and what is piped in behind them; `-` alone is what is piped in."""
    said = " ".join(words).strip()
    piped = ""
    if said == "-" or not (sys.stdin is None or sys.stdin.isatty()):
        piped = sys.stdin.read(MAX_PROMPT + 1)
    said = "" if said == "-" else said
    whole = "\n\n".join(filter(None, (said, piped.strip("\n"))))
    if len(whole) > MAX_PROMPT:
        raise click.UsageError(f"A question of more than {MAX_PROMPT:,} characters is refused.")
    if not whole.strip():
        raise click.UsageError("What is wanted? A question or a prompt is missing.")
    return whole
