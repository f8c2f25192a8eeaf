"""The program is ended from outside in the middle of something: what was shown is there again."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.testing import ProviderLine, call, faulty, says
from recollect.testing.request_checks import find_violation
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.terminal.tmux import READY, OpenTerminal, RealTerminal, needs_tmux

pytestmark = needs_tmux

SLOW = faulty(" ".join(f"word{number}" for number in range(3_000)), pause=0.1)
WRITES = says("I write it.", call("write_file", file_path="b.py", content="print(2)\n"))


def test_a_program_killed_at_a_question_has_not_run_the_call_and_says_so(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    script: list[ProviderLine] = [WRITES, "It was not written."]
    with provider(cli, "openai", script) as server:
        terminal = open_terminal()
        terminal.recollect()
        terminal.wait_for(READY)
        terminal.say("please write b.py", "I write it.", "Yes, once")
        os.kill(terminal.process, signal.SIGKILL)
        again = open_terminal()
        again.recollect("-c")
        again.wait_for("please write b.py", "I write it.", "interrupted", READY)
        again.say("is it there?", "It was not written.")
        assert not (cli.project / "b.py").exists()
        assert not find_violation("openai", server.requests[-1].json)
        assert b"not run" in server.requests[-1].body
        again.press("C-d")
        assert again.wait_for_end() == 0


def stream_and_end(
    cli: Cli, open_terminal: OpenTerminal, end: Callable[[RealTerminal], None], *arguments: str
) -> str:
    """End the program while a reply comes; the last word of it that was shown whole."""
    terminal = open_terminal()
    terminal.recollect(*arguments)
    terminal.wait_for("Ctrl-D leaves" if arguments else READY)
    terminal.say("tell me", "word40 ")
    process, shown = terminal.process, terminal.screen
    end(terminal)
    terminal.wait_until(lambda: not Path(f"/proc/{process}").exists(), "its end")
    words: list[str] = re.findall(r"(word\d+) ", shown)
    return words[-1]


def test_closing_the_terminal_while_a_reply_comes_loses_nothing_that_was_shown(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    with provider(cli, "openai", [SLOW, "Second answer."]):
        last = stream_and_end(cli, open_terminal, RealTerminal.close)
        again = open_terminal()
        again.recollect("-c")
        again.wait_for("tell me", last, READY)
        again.say("go on", "Second answer.")
        again.press("C-d")
        assert again.wait_for_end() == 0


@pytest.mark.parametrize("arguments", [(), ("--plain",)])
def test_a_program_that_is_told_to_end_keeps_what_has_come(
    cli: Cli, open_terminal: OpenTerminal, arguments: tuple[str, ...]
) -> None:
    def terminate(terminal: RealTerminal) -> None:
        number = signal.SIGHUP if arguments else signal.SIGTERM
        os.kill(terminal.process, number)
        terminal.wait_for_end()
        assert terminal.modes["alternate_on"] == "0"
        assert "recollect -" in terminal.screen  # how to come back

    with provider(cli, "openai", [SLOW]):
        last = stream_and_end(cli, open_terminal, terminate, *arguments)
        assert f"{last} " in cli.ok("show", "last").out
