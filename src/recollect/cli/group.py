"""The command `recollect` itself: knows its commands by name and imports one when it is used."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Literal

import click

from recollect import __version__
from recollect.cli.options import examples, read_prompt, store_option

COMMANDS = {
    "ask": "recollect.cli.ask:ask",
    "sessions": "recollect.cli.sessions:sessions",
    "show": "recollect.cli.show:show",
    "context": "recollect.cli.context:context",
    "compact": "recollect.cli.compact:compact",
    "encode": "recollect.cli.encode:encode",
    "models": "recollect.cli.models:models",
    "config": "recollect.cli.config:config",
    "trust": "recollect.cli.trust:trust",
    "search": "recollect.cli.search:search",
    "rename": "recollect.cli.session_commands:rename",
    "fork": "recollect.cli.session_commands:fork",
    "rewind": "recollect.cli.rewind:rewind",
    "trash": "recollect.cli.session_commands:trash",
    "restore": "recollect.cli.session_commands:restore",
    "import": "recollect.cli.import_command:import_",
    "export": "recollect.cli.export:export",
    "doctor": "recollect.cli.doctor:doctor",
    "schema": "recollect.cli.schema_command:schema",
    "demo": "recollect.cli.demo:demo",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        ("recollect demo", "a tour in a store made on the spot"),
        ('recollect -p "fix the failing test"', "the agent, without a screen"),
        ("recollect sessions", "what happened in this project"),
        ("recollect search rate limiter", "where was that again?"),
        ("recollect show 019a8b1c", "read it"),
        ("recollect context 019a8b1c", "what the model sees of it, and what not"),
    ),
)
@click.option("-p", "--prompt", metavar="TEXT", help="Let the agent do this, without a screen.")
@click.option("-m", "--model", metavar="NAME", default="", help="With -p: which model to ask.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Go on in the newest session.")
@click.option("-r", "--resume", "session", metavar="ID", help="Go on in this session.")
@click.option("--fork", is_flag=True, help="With -c or -r: go on in a copy of the session.")
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    metavar="N",
    help="With -p: how many replies at most.  [default: the settings', 100]",
)
@click.option(
    "--output-format",
    "format_",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="What -p prints: the answer, one JSON document, or a line for each event.",
)
@store_option
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def recollect(
    ctx: click.Context,
    *,
    prompt: str | None,
    model: str,
    latest: bool,
    session: str | None,
    fork: bool,
    max_turns: int | None,
    format_: Literal["text", "json", "stream-json"],
    file: Path | None,
) -> None:
    """Every word of your agents' sessions: kept, found, read, forked and rewound.

    An ID is a session's or an entry's id or any unambiguous beginning of it.
    Everything lies in one file, which RECOLLECT_HOME or --store moves.
    """
    if ctx.invoked_subcommand is not None:
        if prompt is not None or latest or session is not None:
            raise click.UsageError("-p, -c and -r go without a command.")
        return
    if prompt is None and not latest and session is None:
        click.echo(ctx.get_help())
        return
    from recollect.cli.headless import run_headless
    from recollect.cli.run import RunOptions

    if latest and session is not None:
        raise click.UsageError("-c and -r do not go together.")
    if fork and not latest and session is None:
        raise click.UsageError("--fork goes with -c or -r.")
    wish = RunOptions(_full_prompt(prompt), model, latest, session, fork, max_turns, format_)
    ctx.exit(run_headless(wish, file))


def _full_prompt(said: str | None) -> str:
    """What was said, and what is piped in behind it."""
    return read_prompt((said,) if said else ())
