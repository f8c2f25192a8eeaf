"""Runs the line-based program in a process of its own, on pipes or on a terminal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from tests.cli.provider import ENV
from tests.cli.runner import PATIENCE, Cli, Result, in_terminal

_PROGRAM = (
    "import sys; from recollect.terminal.plain_program import run_plain;"
    "from recollect.terminal.session_runner import StartOptions;"
    "sys.exit(run_plain(StartOptions(session=sys.argv[1] if len(sys.argv) > 1 else None)))"
)


def plain(cli: Cli, *lines: str, session: str = "", data: bytes | None = None) -> Result:
    """What it prints for these lines on a pipe."""
    given = "".join(f"{line}\n" for line in lines).encode() if data is None else data
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *([session] if session else [])],
        cwd=cli.project,
        env=cli.env(ENV),
        input=given,
        capture_output=True,
        timeout=PATIENCE,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def plain_terminal(cli: Cli, keys: Sequence[tuple[str, str]], term: str = "xterm") -> Result:
    """The same on a terminal of its own, with keys that are typed when their marks appear."""
    env = cli.env({**ENV, "TERM": term})
    return in_terminal([sys.executable, "-c", _PROGRAM], cli.project, env, keys)
