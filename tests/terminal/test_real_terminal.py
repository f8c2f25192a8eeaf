"""The terminal program as a user meets it: in a real terminal, with keys and a screen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from recollect.testing import ProviderLine, call, faulty, says
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.terminal.tmux import RealTerminal, needs_tmux, real_terminal

pytestmark = needs_tmux

READY = "Ask, or / for commands"
KEYS_APART = 1.5  # seconds
WRITES = says("I write it.", call("write_file", file_path="b.py", content="print(2)\n"))


@pytest.fixture
def open_terminal(cli: Cli) -> Iterator[Callable[[], RealTerminal]]:
    """Terminals of one user."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(real_terminal(cli.project, cli.env(ENV)))


def _say(terminal: RealTerminal, text: str, *expected: str) -> None:
    terminal.write(text)
    terminal.wait_for(text)
    terminal.press("Enter")
    terminal.wait_for(*expected)


def _answer(terminal: RealTerminal, key: str, gone: str) -> None:
    """A key that comes right after typing decides nothing, so it is pressed now and then."""
    pressed = 0.0

    def answered() -> bool:
        nonlocal pressed
        if gone not in terminal.screen:
            return True
        if time.monotonic() - pressed > KEYS_APART:
            terminal.press(key)
            pressed = time.monotonic()
        return False

    terminal.wait_until(answered, f"{gone!r} to go away")


def test_a_conversation_with_an_approval_and_back_with_its_files(
    cli: Cli, open_terminal: Callable[[], RealTerminal]
) -> None:
    script: list[ProviderLine] = [WRITES, "It is **done**.", "Resumed."]
    with provider(cli, "openai", script):
        terminal = open_terminal()
        terminal.recollect()
        terminal.write("please write b.py")  # what is typed while it loads is not lost
        terminal.wait_for("please write b.py", "mine")
        terminal.press("Enter")
        terminal.wait_for("I write it.", "print(2)", "Yes, once")
        assert not (cli.project / "b.py").exists()
        _answer(terminal, "y", "Yes, once")
        terminal.wait_for("It is done.", READY)
        assert (cli.project / "b.py").read_text() == "print(2)\n"
        terminal.resize(60, 18)
        terminal.wait_for("It is done.", READY)
        _say(terminal, "/rewind 1 both yes", "/rewind to")
        terminal.wait_until(lambda: not (cli.project / "b.py").exists(), "the file to be gone")
        terminal.press("C-c")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
        assert "recollect -r" in terminal.all_output


def test_an_interrupt_keeps_what_came_and_a_killed_program_is_resumed(
    cli: Cli, open_terminal: Callable[[], RealTerminal]
) -> None:
    slow = faulty("A first sentence. " + _words(2_000), pause=0.1)
    with provider(cli, "openai", [slow, "Second answer.", "Third answer."]):
        terminal = open_terminal()
        terminal.recollect()
        terminal.wait_for(READY)
        _say(terminal, "tell me", "esc to interrupt")
        terminal.press("Escape")
        terminal.wait_for("interrupted", READY, without=("esc to interrupt",))
        _say(terminal, "go on", "Second answer.")
        os.kill(terminal.process, signal.SIGKILL)
        again = open_terminal()
        again.recollect("-c")
        again.wait_for("tell me", "go on", "Second answer.", READY)
        _say(again, "and now", "Third answer.")
        again.press("C-d")
        assert again.wait_for_end() == 0


def test_a_compaction_is_made_and_undone_and_hostile_text_moves_nothing(
    cli: Cli, open_terminal: Callable[[], RealTerminal]
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x1b[31mred \u202egnorw end."
    script: list[ProviderLine] = [f"{_words(3_000)} {evil}", f"{_words(4_000)} Second."]
    with provider(cli, "openai", script):
        terminal = open_terminal()
        terminal.recollect(columns=80, rows=24)
        terminal.wait_for(READY)
        _say(terminal, "first", "gnorw end.")
        assert "owned" not in terminal.title
        _say(terminal, "second", "Second.")
        terminal.wait_for(READY, without=("esc to interrupt",))
        terminal.resize(20, 5)
        terminal.resize(80, 24)
        _say(terminal, "/compact", "apply")
        terminal.press("a")
        terminal.wait_for("compacted", READY)
        _say(terminal, "/compact undo", "undid")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
    assert "undid" in cli.ok("show", "--last", "3").out


def _words(count: int) -> str:
    """Text in which nothing repeats."""
    return " ".join(f"word{number}" for number in range(count))
