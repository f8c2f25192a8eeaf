"""`recollect -p` in mode `free`: no command that goes through a folder sends its secrets."""

from __future__ import annotations

import pytest

from recollect.testing import call
from tests.cli.model_server import ENV, outputs, reply, server
from tests.cli.runner import Cli
from tests.execution.workbench import isolation_of
from tests.models.server import HELLO, http

SECRET = "canary-51c7"
LINES = (
    "grep -rn . .",
    "ls -A | xargs cat",
    'for f in $(ls -A); do cat "$f"; done',
    "find . -type f -exec cat {} +",
)


def runs(*commands: str, directory: str = "") -> bytes:
    where = {"directory": directory} if directory else {}
    asked = (call("run_shell_command", id=each, command=each, **where) for each in commands)
    return reply(*asked)


@pytest.fixture(autouse=True)
def sandbox() -> None:
    isolation_of("bubblewrap")  # skips where it is missing


def test_nothing_of_a_secret_in_the_project_reaches_the_provider(cli: Cli) -> None:
    (cli.project / ".env").write_text(f"KEY={SECRET}\n")
    (cli.project / "notes.txt").write_text("a plum\n")
    with server(cli, runs(*LINES, "grep -rn plum notes.txt"), http(HELLO)) as on:
        done = cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert ["not allowed" in each for each in outputs(on)] == [True, True, True, True, False]
    assert "'.env' lies in the folder it reads" in outputs(on)[0]
    assert SECRET not in str(on.asked)
    assert SECRET not in done.out + done.err


def test_the_same_commands_run_where_no_secret_lies(cli: Cli) -> None:
    (cli.project / "notes.txt").write_text("a plum\n")
    with server(cli, runs(*LINES), http(HELLO)) as on:
        cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert all("a plum" in each for each in outputs(on)), outputs(on)


def test_the_directory_that_a_call_names_is_the_one_that_is_looked_through(cli: Cli) -> None:
    (cli.project / ".env").write_text(f"KEY={SECRET}\n")
    for name in ("src", ".aws"):
        (cli.project / name).mkdir()
        (cli.project / name / "notes").write_text(f"a plum {SECRET if name == '.aws' else ''}\n")
    with server(
        cli,
        runs("grep -rn . .", directory="src"),
        runs("cat notes", directory=".aws"),
        runs("git status", directory="src"),
        http(HELLO),
    ) as on:
        cli.ok("-p", "Look.", "--mode", "free", env=ENV)
    assert "a plum" in outputs(on)[0]
    assert ["not allowed" in each for each in outputs(on)] == [False, True, True]
    assert SECRET not in str(on.asked)
