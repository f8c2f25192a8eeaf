"""The command `recollect` itself: knows its commands by name and imports one when it is used."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

import click

from recollect import __version__
from recollect.cli.options import examples

COMMANDS = {
    "ask": "recollect.cli.ask:ask",
    "sessions": "recollect.cli.sessions:sessions",
    "show": "recollect.cli.show:show",
    "context": "recollect.cli.context:context",
    "compact": "recollect.cli.compact:compact",
    "encode": "recollect.cli.encode:encode",
    "models": "recollect.cli.models:models",
    "search": "recollect.cli.search:search",
    "rename": "recollect.cli.actions:rename",
    "fork": "recollect.cli.actions:fork",
    "rewind": "recollect.cli.actions:rewind",
    "trash": "recollect.cli.actions:trash",
    "restore": "recollect.cli.actions:restore",
    "import": "recollect.cli.importing:import_",
    "export": "recollect.cli.export:export",
    "doctor": "recollect.cli.doctor:doctor",
    "schema": "recollect.cli.schema:schema",
    "demo": "recollect.cli.demo:demo",
}


class LateGroup(click.Group):
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
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.command(
    cls=LateGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        ("recollect demo", "a tour in a store made on the spot"),
        ("recollect sessions", "what happened in this project"),
        ("recollect search rate limiter", "where was that again?"),
        ("recollect show 019a8b1c", "read it"),
        ("recollect context 019a8b1c", "what the model sees of it, and what not"),
    ),
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def recollect(ctx: click.Context) -> None:
    """Every word of your agents' sessions: kept, found, read, forked and rewound.

    An ID is a session's or an entry's id or any unambiguous beginning of it.
    Everything lies in one file, which RECOLLECT_HOME or --store moves.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
