"""First contact: help, versions, usage errors, and what start-up loads."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import click
import pytest

from recollect import __version__
from recollect.cli.group import COMMANDS, recollect
from tests.cli.runner import PATIENCE, Cli

LOADED = """
import sys
before = set(sys.modules)
from recollect.__main__ import main
try:
    main({arguments!r})
except SystemExit:
    pass
print()
print(sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_a_sentence_options_and_examples(
    cli: Cli, command: str
) -> None:
    text = cli.ok(command, "--help").out
    usage, sentence, *_ = [line.strip() for line in text.splitlines() if line.strip()]
    assert usage.startswith(f"Usage: recollect {command}")
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert "Options:" in text
    assert f"Examples:\n    recollect {command}" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tables_short_help_is_the_first_sentence_of_the_commands_help(command: str) -> None:
    found = recollect.get_command(click.Context(recollect), command)
    assert found is not None
    assert found.help is not None
    assert " ".join(found.help.split("\n\n")[0].split()) == COMMANDS[command].help


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_without_a_command_the_help_lists_every_command_in_whole_sentences(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    text = cli.ok(*arguments).out
    listed = text.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in listed] == list(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("...") for line in listed)
    assert "Examples:" in text


@pytest.mark.parametrize("arguments", [("--version",), ("-V",)])
def test_the_version_is_one_line(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli.ok(*arguments).out == f"recollect {__version__}\n"


def test_the_installed_command_runs(cli: Cli) -> None:
    command = Path(sys.executable).with_name("recollect")
    done = subprocess.run(
        [command, "sessions", "--json"],
        cwd=cli.project,
        env=cli.env(),
        capture_output=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[]\n", b"")


def test_a_mistyped_command_is_a_usage_error_that_names_the_nearest(cli: Cli) -> None:
    result = cli("sesions")
    assert result.code == 2
    assert "Did you mean 'sessions'?" in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("trash",),
        ("show", "--nope", "x"),
        ("sessions", "--limit", "0"),
        ("search",),
        ("search", "x", "--after", "someday"),
        ("search", "x", "--role", "robot"),
        ("export", "x", "--to", "nowhere"),
        ("rename",),
        ("rename", "5f3a9c21"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_prints_nothing_to_stdout(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    result = cli(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert f"Try 'recollect {arguments[0]} --help' for help." in result.err


def loaded(cli: Cli, *arguments: str) -> set[str]:
    """The modules that a command imports, in a fresh process."""
    code = LOADED.format(arguments=list(arguments))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=cli.env(), check=True
    )
    return set(ast.literal_eval(done.stdout.splitlines()[-1]))


def test_help_imports_no_command(cli: Cli) -> None:
    modules = loaded(cli, "--help")
    own = {name for name in modules if name.startswith("recollect")}
    assert not own & {f"recollect.cli.{entry.module}" for entry in COMMANDS.values()}
    assert len(own) <= 12
    assert not modules & {"apsw", "asyncio", "msgspec", "zstandard"}


def test_the_version_imports_nothing_but_the_package(cli: Cli) -> None:
    modules = loaded(cli, "--version")
    assert {name for name in modules if name.startswith("recollect")} == {
        "recollect",
        "recollect.__main__",
    }
    assert not modules & {"asyncio", "click", "msgspec"}
