"""Options before a command: passed on to it or refused, never ignored; and prompts without `-p`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import click
import pytest

from recollect.cli.group import COMMANDS, recollect
from recollect.testing import model, user
from tests.cli.model_server import ENV, server
from tests.cli.runner import Cli
from tests.models.server import HELLO, http

# what each command needs to run; of those that use a store, all are run with `--store`
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "ask": ("hi",),
    "sessions": (),
    "show": (),
    "context": (),
    "compact": ("--preview", "--budget", "1000"),
    "encode": ("--to", "openai"),
    "models": (),
    "config": (),
    "memory": ("refresh",),
    "trust": ("--list",),
    "search": ("needle",),
    "rename": ("another title",),
    "fork": (),
    "rewind": ("start",),
    "trash": ("last",),
    "restore": ("SESSION",),
    "import": ("nothing.json",),
    "export": ("--to", "gemini", "-o", "-"),
    "store": ("status",),
    "doctor": (),
    "serve": ("--http", "off", "--nplt", "off"),  # ends at once; test_serve.py has its store
    "connect": ("127.0.0.1:1",),
    "token": ("list",),
    "schema": (),
    "completion": ("bash",),
    "demo": ("--tour",),
}
VALUES = {
    "--model": "gpt-5",
    "--max-turns": "3",
    "--output-format": "json",
    "--resume": "last",
    "--mode": "edit",
}
IGNORED = {"--help", "--version"}  # they end the program before any command


def command_named(name: str) -> click.Command:
    found = recollect.get_command(click.Context(recollect), name)
    assert found is not None
    return found


def flags(command: click.Command) -> set[str]:
    return {flag for param in command.params for flag in param.opts if flag.startswith("--")}


def group_options() -> Iterator[tuple[str, tuple[str, ...]]]:
    for param in recollect.params:
        assert isinstance(param, click.Option)
        long = next(flag for flag in param.opts if flag.startswith("--"))
        if long not in IGNORED:
            yield long, (long,) if param.is_flag else (long, VALUES.get(long, "text"))


def test_every_command_of_the_table_is_tried_here() -> None:
    assert set(ARGUMENTS) == set(COMMANDS)


@pytest.mark.parametrize("name", [n for n in COMMANDS if "--store" in flags(command_named(n))])
def test_a_store_is_honoured_before_and_after_the_command(cli: Cli, name: str) -> None:
    session, _ = cli.session([user("a needle"), model("found")])
    copy = cli.project / "copy.db"
    cli.store.rename(copy)
    given = [session.id if word == "SESSION" else word for word in ARGUMENTS[name]]
    answers = []
    for before in (True, False):
        store = cli.project / ("1.db" if before else "2.db")
        shutil.copy(copy, store)
        option = ["--store", str(store)]
        line = [*option, name, *given] if before else [name, *given, *option]
        with server(cli, http(HELLO)):
            answers.append(cli(*line, env=ENV))
        assert not cli.store.exists(), "the user's own store was used"
    assert answers[0].code == answers[1].code
    assert abs(len(answers[0].out) - len(answers[1].out)) < 100  # the paths of two folders


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_before_a_command_is_ignored(cli: Cli, name: str) -> None:
    theirs = flags(command_named(name))
    for long, given in group_options():
        if long in theirs:
            continue
        result = cli(*given, name, *ARGUMENTS[name])
        assert (result.code, result.out) == (2, ""), given
        assert f"`recollect {name}` has no option -" in result.err
    assert not cli.store.exists()


def test_a_session_of_another_store_is_trashed_there_and_not_in_the_users_own(cli: Cli) -> None:
    session, _ = cli.session([user("mine")])
    copy = cli.project / "copy.db"
    shutil.copy(cli.store, copy)
    cli.ok("--store", str(copy), "trash", session.id)
    assert "mine" in cli.ok("sessions").out
    assert "mine" not in cli.ok("sessions", "--store", str(copy)).out


def test_a_model_before_a_command_is_the_commands_model(cli: Cli) -> None:
    session, _ = cli.session([user("hi")])
    before = cli.ok("-m", "gpt-5", "context", session.id, "--json").json
    assert before == cli.ok("context", session.id, "--model", "gpt-5", "--json").json
    assert before["model"] == "gpt-5"


def test_an_option_of_the_command_before_its_name_is_refused_with_the_right_order(cli: Cli) -> None:
    result = cli("--json", "sessions", "--all")
    assert result.code == 2
    assert "--json goes after the command: `recollect sessions --all --json`" in result.err


@pytest.mark.parametrize("given", [("-m", "gpt-5"), ("--max-turns", "3"), ("--store", "x.db")])
def test_an_option_alone_says_what_is_missing(cli: Cli, given: tuple[str, str]) -> None:
    result = cli(*given)
    assert (result.code, result.out) == (2, "")
    assert f"A prompt or a command is missing beside {given[0]}" in result.err


@pytest.mark.parametrize(
    ("line", "piped"),
    [
        (("fix the bug",), ""),
        (("fix", "the", "bug"), ""),
        ((), "fix the bug\n"),
        (("fix the bug", "--max-turns", "3"), ""),
    ],
)
def test_a_sentence_without_a_command_is_a_prompt(
    cli: Cli, line: tuple[str, ...], piped: str
) -> None:
    with server(cli, http(HELLO)):
        assert cli.ok(*line, stdin=piped, env=ENV).out.strip() == "hello"
    assert "fix the bug" in cli.ok("sessions").out


@pytest.mark.parametrize(
    "line", [("sesions",), ("serch", "rate", "limiter"), ("delete", "all"), ("rm", "x", "5f3a9c21")]
)
def test_a_mistyped_command_never_starts_an_agent(cli: Cli, line: tuple[str, ...]) -> None:
    result = cli(*line)
    assert (result.code, result.out) == (2, "")
    assert f"There is no command '{line[0]}'." in result.err
    if len(line) > 1:
        assert f"recollect -p '{' '.join(line)}'" in result.err
    assert not cli.store.exists()
