"""The command `recollect` itself, and the table of its commands.

The table holds each command's module and short help, so that `recollect --help` imports no command
and a command imports no other. Errors that recollect foresees are one sentence on stderr.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from recollect import __version__
from recollect.cli.main import FAILED, INTERRUPTED
from recollect.cli.options import examples, read_prompt, store_option
from recollect.errors import RecollectError


class CommandEntry(NamedTuple):
    """A row of the table: where the command is defined, and the first sentence of its help."""

    module: str  # in recollect.cli
    help: str


COMMANDS = {
    "ask": CommandEntry("ask", "Ask a model one question."),
    "sessions": CommandEntry("sessions", "List this project's sessions, most recently used first."),
    "show": CommandEntry("show", "Show a session, or an entry with its neighbours."),
    "context": CommandEntry("context", "Show what the model sees of a session, or change it."),
    "compact": CommandEntry(
        "compact", "Replace the older part of what the model sees with a snapshot."
    ),
    "encode": CommandEntry("encode", "Print the exact request a provider would be sent."),
    "models": CommandEntry("models", "List the known models, or describe one."),
    "config": CommandEntry("config", "Show the settings in force and where each comes from."),
    "trust": CommandEntry("trust", "Trust this project, or a folder and everything below it."),
    "search": CommandEntry("search", "Find entries by their words."),
    "rename": CommandEntry("session_commands", "Give a session another title."),
    "fork": CommandEntry("session_commands", "Start a session that shares another's beginning."),
    "rewind": CommandEntry("rewind", "Move a session's head; nothing is deleted."),
    "trash": CommandEntry("session_commands", "Move a session to the trash; nothing is deleted."),
    "restore": CommandEntry("session_commands", "Bring a session back from the trash."),
    "import": CommandEntry("import_command", "Import other programs' session files without loss."),
    "export": CommandEntry("export", "Write a session as another program's file, without loss."),
    "doctor": CommandEntry("doctor", "Check the store; exit code 1 if something is wrong."),
    "schema": CommandEntry("schema_command", "Print the JSON Schema of an entry."),
    "demo": CommandEntry("demo", "Let the agent answer a question, and show what the model saw."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they run, and listed from the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"recollect.cli.{COMMANDS[cmd_name].module}")
        # a keyword of Python cannot be a function's name
        command: click.Command = getattr(module, "import_" if cmd_name == "import" else cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            # late: only a mistyped command needs it
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
        ("recollect demo", "a tour in a temporary store"),
        ('recollect -p "fix the failing test"', "run the agent non-interactively"),
        ("recollect sessions", "what happened in this project"),
        ("recollect search rate limiter", "find where that was"),
        ("recollect show 019a8b1c", "read it"),
        ("recollect context 019a8b1c", "what the model sees of it, and what it does not"),
    ),
)
@click.option("-p", "--prompt", metavar="TEXT", help="Run this prompt non-interactively.")
@click.option("-m", "--model", metavar="NAME", default="", help="With -p: the model to use.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Continue the most recent session.")
@click.option("-r", "--resume", "session", metavar="ID", help="Continue this session.")
@click.option("--fork", is_flag=True, help="With -c or -r: continue in a copy of the session.")
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    metavar="N",
    help="With -p: the maximum number of replies.  [default: agent.max_turns, 100]",
)
@click.option(
    "--output-format",
    "format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="What -p prints: the answer, one JSON document, or one JSON line per event.",
)
@store_option
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def recollect(
    ctx: click.Context,
    /,
    *,
    prompt: str | None,
    latest: bool,
    session: str | None,
    fork: bool,
    file: Path | None,
    **given: Any,
) -> None:
    """Every word of your agents' sessions: kept, found, read, forked and rewound.

    An ID is the id of a session or an entry, or any unambiguous prefix of it.
    All data is in one file; RECOLLECT_HOME or --store chooses another.
    """
    if ctx.invoked_subcommand is not None:
        if prompt is not None or latest or session is not None:
            raise click.UsageError("-p, -c and -r cannot be combined with a command.")
        return
    if prompt is None and not latest and session is None:
        click.echo(ctx.get_help())
        return
    if latest and session is not None:
        raise click.UsageError("-c and -r cannot be combined.")
    if fork and not latest and session is None:
        raise click.UsageError("--fork needs -c or -r.")
    # late, as a command's module is: the agent loads most of the package
    from recollect.cli.headless import HeadlessOptions, run_headless
    from recollect.runtime.prompt_run import RunOptions
    from recollect.runtime.runtime import LAST

    text = read_prompt((prompt,) if prompt else ())
    options = HeadlessOptions(
        text,
        session=LAST if latest else session,
        fork=fork,
        format=given["format"],
        run=RunOptions(given["model"], max_turns=given["max_turns"]),
    )
    ctx.exit(run_headless(options, file))


def run_command(arguments: list[str]) -> int:
    """The exit code."""
    for stream in (sys.stdout, sys.stderr):
        # a terminal that cannot show a character gets its number, not a traceback
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    try:
        code = recollect.main(arguments, prog_name="recollect", standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except RecollectError as error:
        return _fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}")
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    # late: help needs neither the pager nor redaction
    from recollect.cli.console import print_error

    print_error(message)
    return FAILED
