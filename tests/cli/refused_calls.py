"""Replies that run commands, and what was refused of them."""

from __future__ import annotations

from recollect.testing import call
from tests.cli.model_server import reply
from tests.cli.runner import Result


def runs(*commands: str) -> bytes:
    return reply(*(call("run_shell_command", id=each, command=each) for each in commands))


def refusals(done: Result) -> list[str]:
    return [line for line in done.err.splitlines() if line.startswith("not allowed: ")]
