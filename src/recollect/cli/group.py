"""The command `recollect` itself, and the table of its commands.

The table holds each command's module and short help, so that `recollect --help` imports no command
and a command imports no other. Errors that recollect foresees are one sentence on stderr.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from recollect import __version__
from recollect.cli.group_options import (
    explain_order,
    pass_options_on,
    refuse_options_alone,
    with_bare_prompt,
)
from recollect.cli.main import FAILED, INTERRUPTED
from recollect.cli.options import (
    COMPLETE,
    NO_SYSTEM,
    PICK,
    attach_option,
    deny_option,
    examples,
    read_piped,
    read_prompt,
    show_secret_option,
    store_option,
)
from recollect.errors import RecollectError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from recollect.store.store_address import StoreAddress


class CommandEntry(NamedTuple):
    """A row of the table: where the command is defined, and the first sentence of its help."""

    module: str  # in recollect.cli
    help: str


COMMANDS = {
    "ask": CommandEntry("ask", "Ask a model one question."),
    "sessions": CommandEntry("sessions", "List this project's sessions, most recently used first."),
    "show": CommandEntry("show", "Show a session, or entries of it."),
    "context": CommandEntry("context", "Show what the model sees of a session, or change it."),
    "compact": CommandEntry(
        "compact", "Replace the older part of what the model sees with a snapshot."
    ),
    "encode": CommandEntry("encode", "Print the exact request a provider would be sent."),
    "models": CommandEntry("models", "List the known models, or describe one."),
    "config": CommandEntry("config", "Show the settings and where each comes from, or set one."),
    "memory": CommandEntry("memory", "Show what every session here is told, or add a fact."),
    "trust": CommandEntry("trust", "Trust a folder's memory, settings and hooks."),
    "search": CommandEntry("search", "Find entries by their words."),
    "rename": CommandEntry("session_commands", "Give a session another title."),
    "fork": CommandEntry("session_commands", "Start a session that shares another's beginning."),
    "rewind": CommandEntry("rewind", "Move a session's head; nothing is deleted."),
    "trash": CommandEntry("session_commands", "Move a session to the trash; nothing is deleted."),
    "restore": CommandEntry("session_commands", "Bring a session back from the trash."),
    "import": CommandEntry("import_command", "Import other programs' session files without loss."),
    "export": CommandEntry("export", "Write a session as another program's file, without loss."),
    "store": CommandEntry("store_command", "Show, set up or copy a store."),
    "doctor": CommandEntry("doctor", "Check the store; exit code 1 if something is wrong."),
    "serve": CommandEntry("serve", "Serve this machine's sessions to other programs."),
    "connect": CommandEntry("connect", "Talk to a recollect server."),
    "token": CommandEntry("token", "Name the clients of `recollect serve`, and what each may do."),
    "schema": CommandEntry("schema_command", "Print the JSON Schema of an entry."),
    "completion": CommandEntry("completion", "Print the completion script of a shell."),
    "demo": CommandEntry("demo", "Replay a recorded coding session, with real tools and files."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they run, and listed from the table.

    No option before a command is ignored: it is the command's as well, or it is refused.
    """

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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """From the table: click would import every command for its help."""
        # late: only a shell that completes a word needs it
        from click.shell_completion import CompletionItem

        options = click.Command.shell_complete(self, ctx, incomplete)
        fitting = (name for name in COMMANDS if name.startswith(incomplete))
        return [CompletionItem(name, help=COMMANDS[name].help) for name in fitting] + options

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, with_bare_prompt(self, ctx, args, COMMANDS))
        except click.NoSuchOption as error:
            raise explain_order(self, ctx, error, args) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name and command and not ctx.resilient_parsing:
            pass_options_on(self, ctx, name, command)
        return name, command, rest


@click.command(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        ("recollect", "open the terminal program; -c continues the most recent session"),
        ("recollect demo", "a recorded session with real tools, in a temporary folder"),
        ('recollect -p "fix the failing test"', "run the agent non-interactively"),
        ('recollect -p "fix it" --mode edit', "let it change files"),
        ("recollect sessions", "what happened in this project"),
        ("recollect search rate limiter", "find where that was"),
        ("recollect show 5f3a9c21", "read it"),
        ("recollect context last", "what the model sees of it, and what it does not"),
    ),
)
@click.option("-p", "--prompt", metavar="TEXT", help="Run this prompt non-interactively.")
@click.option("-m", "--model", metavar="NAME", default="", help="The model to use.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Continue the most recent session.")
@click.option(
    "-r",
    "--resume",
    "session",
    metavar="[ID]",
    is_flag=False,
    flag_value=PICK,
    help="Continue this session; without an ID, on a terminal, choose one.",
)
@click.option("--fork", is_flag=True, help="With -c or -r: continue in a copy of the session.")
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    metavar="N",
    help="The maximum number of replies to a prompt.  [default: agent.max_turns, 100]",
)
@click.option(
    "--output-format",
    "format",
    type=click.Choice(["text", "json", "stream-json"]),
    default="text",
    help="What -p prints: the answer, one JSON document, or one JSON line per event.",
)
@click.option(
    "--mode",
    type=click.Choice(["plan", "ask", "edit", "free", "unrestricted"]),
    help="What it may do. edit: change files; free: run commands in the sandbox too;"
    " plan: neither; unrestricted: anything, without a sandbox, for containers only."
    "  [default: permissions.mode, ask]",
)
@click.option(
    "--allow", metavar="RULE", multiple=True, help='Allow commands, such as "git diff *".'
)
@deny_option
@show_secret_option
@click.option("--plain", is_flag=True, help="The terminal program on lines, without a screen.")
@click.option("--system", metavar="TEXT", default="", help="System instructions for a new session.")
@click.option(
    "--add-dir",
    "directories",
    metavar="DIR",
    multiple=True,
    help="Work in this folder as well.",
)
@attach_option
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
    plain: bool,
    file: StoreAddress | None,
    **given: Any,
) -> None:
    """Every word of your agents' sessions: kept, found, read, forked and rewound.

    An ID is the short id that commands print, any other unambiguous beginning or end of an id, or
    `last`. All data is in one file; RECOLLECT_STORE or --store chooses another, or a database.
    """
    if ctx.invoked_subcommand is not None:
        return
    opens = prompt is None and (plain or (sys.stdin.isatty() and sys.stdout.isatty()))
    if prompt is None and not latest and session is None and not opens:
        prompt = read_piped().strip()
        if not prompt:
            refuse_options_alone(ctx)
            click.echo(ctx.get_help())
            return
    if latest and session is not None:
        raise click.UsageError("-c and -r cannot be combined.")
    if fork and not latest and session is None:
        raise click.UsageError("--fork needs -c or -r.")
    if given["system"] and (latest or session is not None):
        raise click.UsageError(NO_SYSTEM)
    if session == PICK and not opens:
        raise click.UsageError("-r needs an ID here; `recollect sessions` lists the sessions.")
    if opens:
        del given["format"]
        # late, as a command's module is
        from recollect.cli.terminal_command import run_terminal

        options = {"session": session, "latest": latest, "fork": fork, "plain": plain, **given}
        ctx.exit(run_terminal(file, **options))
    if plain:
        raise click.UsageError("--plain and -p cannot be combined.")
    text = read_prompt((prompt,) if prompt else ())
    # late, as a command's module is: the agent loads most of the package
    from recollect.cli.headless import run_agent

    ctx.exit(run_agent(text, file, session=session, latest=latest, fork=fork, **given))


def run_command(arguments: list[str]) -> int:
    """The exit code."""
    _accept_all_characters()
    if COMPLETE in os.environ:
        # late: only a shell that completes a word needs it
        from recollect.cli.completion import answer_shell

        return answer_shell(recollect)
    try:
        with recollect.make_context("recollect", list(arguments)) as ctx:
            code = recollect.invoke(ctx)
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, EOFError):
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except RecollectError as error:
        return _fail(str(error))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(_explain(error))
    return code if isinstance(code, int) else 0


def _accept_all_characters() -> None:
    """Neither a character on stdout or stderr nor a byte on stdin is ever an error."""
    other = "backslashreplace"
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, other), (sys.stderr, other)):
        with suppress(ValueError):  # something was read from it already
            getattr(stream, "reconfigure", lambda **_: None)(errors=errors)
    if (sys.stdout.encoding or "utf-8").lower() != "utf-8":
        # late: most terminals show every character
        from recollect.cli.plain_characters import use_plain_characters

        use_plain_characters()


def _explain(error: OSError) -> str:
    try:
        os.getcwd()  # noqa: PTH109 - the same, and it says what it does
    except OSError:
        return "the working directory does not exist any more; change to another one"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


def _fail(message: str) -> int:
    # late: help needs neither the pager nor redaction
    from recollect.cli.console import print_error

    print_error(message)
    return FAILED
