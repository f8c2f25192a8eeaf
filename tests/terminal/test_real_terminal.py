"""The terminal program as a user meets it: in a real terminal, with keys and a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recollect.testing import ProviderLine, call, says
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.terminal.tmux import RealTerminal, needs_tmux, real_terminal

pytestmark = needs_tmux


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
def open_terminal(cli: Cli) -> Iterator[Callable[[], RealTerminal]]:
    """Further terminals of the same user."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda: stack.enter_context(real_terminal(cli.project, cli.env(ENV)))


def test_a_first_conversation(cli: Cli, open_terminal: Callable[[], RealTerminal]) -> None:
    script: list[ProviderLine] = [
        says("I write it.", call("write_file", file_path="b.py", content="print(2)\n")),
        "It is **done**.",
    ]
    with provider(cli, "openai", script):
        terminal = open_terminal()
        terminal.recollect()
        terminal.write("please write b.py")  # also what is typed while it loads
        terminal.wait_for("please write b.py", "mine")
        terminal.press("Enter")
        terminal.wait_for("I write it.", "print(2)")
        assert not (cli.project / "b.py").exists()
        terminal.press("Enter")
        terminal.wait_for("It is done.")
        assert (cli.project / "b.py").read_text() == "print(2)\n"
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
