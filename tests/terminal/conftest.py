"""Fixtures that the tests of the terminal program share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.provider import ENV
from tests.cli.runner import Cli
from tests.terminal import pilot
from tests.terminal.tmux import OpenTerminal, real_terminal

terminal = pilot.terminal


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
def open_terminal(cli: Cli) -> Iterator[OpenTerminal]:
    """Terminals of one user."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(real_terminal(cli.project, cli.env(ENV)))
