"""What a stranger sees first: help, versions, usage errors. And how fast."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recollect import __version__
from recollect.cli.group import COMMANDS
from tests.cli.runner import Cli


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


def test_a_mistyped_command_is_a_usage_error_that_names_the_nearest(cli: Cli) -> None:
    result = cli("sesions")
    assert result.code == 2
    assert "Did you mean 'sessions'?" in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "--nope", "x"),
        ("sessions", "--limit", "0"),
        ("search",),
        ("search", "x", "--after", "someday"),
        ("search", "x", "--role", "robot"),
        ("export", "x", "--to", "nowhere"),
        ("rename", "x"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_prints_nothing_to_stdout(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    result = cli(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert f"Try 'recollect {arguments[0]} --help' for help." in result.err


def test_help_loads_no_store_no_event_loop_and_no_serialiser(cli: Cli) -> None:
    code = "import sys; from recollect.__main__ import main\n"
    code += "sys.argv = ['recollect', '--help']\ntry: main()\nexcept SystemExit: pass\n"
    code += "print(sorted({'apsw', 'asyncio', 'msgspec', 'zstandard'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=cli.env(), check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
