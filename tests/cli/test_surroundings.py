"""What a shell and a machine can do to a command: closed streams, no home, no folder, ASCII."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recollect.testing import user
from tests.cli.model_server import ENV, server
from tests.cli.runner import PATIENCE, Cli, Result
from tests.models.server import HELLO, http

PROGRAM = str(Path(sys.executable).with_name("recollect"))


def shell(cli: Cli, line: str, **env: str) -> Result:
    """A line in bash, where `recollect` is the installed command."""
    script = f'set -o pipefail; recollect() {{ "{PROGRAM}" "$@"; }}; {line}'
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=cli.project,
        env=cli.env(env),
        capture_output=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize(
    "line",
    [
        "recollect sessions >&-",
        "recollect sessions 2>&-",
        "recollect sessions <&- >&- 2>&-",
        "recollect show | head -1 >/dev/null",
        "recollect show --json | true",
        "recollect --help | true",
        "recollect --version >&-",
        "recollect rename 'a title' >&-",
    ],
)
def test_a_closed_stream_is_no_failure_and_no_traceback(cli: Cli, line: str) -> None:
    cli.session([user("x" * 5_000) for _ in range(100)])
    result = shell(cli, line)
    assert (result.code, result.err) == (0, "")


def test_a_command_whose_stderr_is_gone_still_fails(cli: Cli) -> None:
    assert shell(cli, "recollect show nothing 2>&-").code == 1
    assert shell(cli, "recollect show nothing 2>&1 >/dev/null | true").code == 1


def test_a_full_disk_is_one_sentence(cli: Cli) -> None:
    result = shell(cli, "recollect schema >/dev/full")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "No space left" in result.err


def test_a_pager_that_ends_early_is_no_failure(cli: Cli) -> None:
    cli.session([user("x" * 5_000) for _ in range(100)])
    result = cli.terminal("show", env={"PAGER": "head -1"})
    assert result.code == 0
    assert "Traceback" not in result.out


@pytest.mark.parametrize("line", ["sessions", "config", "trust", "memory", "-p hi", "show"])
def test_a_deleted_working_directory_is_one_sentence(cli: Cli, line: str) -> None:
    result = shell(cli, f"mkdir gone && cd gone && rmdir ../gone && recollect {line}")
    assert (result.code, result.out) == (1, "")
    assert result.err == (
        "recollect: the working directory does not exist any more; change to another one\n"
    )


def test_a_data_directory_that_cannot_be_made_is_one_sentence(cli: Cli) -> None:
    result = shell(cli, "recollect sessions", RECOLLECT_HOME="/proc/nowhere/data")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("recollect: cannot open /proc/nowhere/data/recollect.db: ")
    assert result.err.count("\n") == 1


def test_without_a_home_directory_nothing_is_made_in_the_current_one(cli: Cli) -> None:
    result = cli("sessions", env={"RECOLLECT_HOME": "~nobody-of-this-name/data"})
    assert result.code == 1
    assert "no home directory; set HOME or RECOLLECT_HOME" in result.err
    assert list(cli.project.iterdir()) == []


def test_an_ascii_terminal_gets_our_marks_in_ascii(cli: Cli) -> None:
    cli.session([user("限流")])
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = shell(cli, "recollect show", **ascii_only)
    assert (result.code, result.err) == (0, "")
    assert result.out.isascii()
    assert "\\u9650\\u6d41" in result.out
    assert " - 1 entry - " in result.out
    assert shell(cli, "recollect sessions", LC_ALL="C").code == 0


def test_bytes_that_are_no_text_can_be_piped_in(cli: Cli) -> None:
    with server(cli, http(HELLO)):
        result = shell(cli, "printf 'a\\xffb' | recollect", **ENV)
    assert (result.code, result.out) == (0, "hello\n")
