"""The program is ended from outside in the middle of something: what was shown is there again."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from recollect.testing import ProviderLine, call, faulty, says
from recollect.testing.request_checks import find_violation
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.terminal.tmux import READY, OpenTerminal, needs_tmux

pytestmark = needs_tmux

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


def test_closing_the_terminal_while_a_reply_comes_loses_nothing_that_was_shown(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    words = " ".join(f"word{number}" for number in range(3_000))
    with provider(cli, "openai", [faulty(words, pause=0.2), "Second answer."]):
        terminal = open_terminal()
        terminal.recollect()
        terminal.wait_for(READY)
        terminal.say("tell me", "esc to interrupt")
        terminal.wait_until(lambda: len(re.findall(r"word\d+", terminal.screen)) > 40, "words")
        process, shown = terminal.process, terminal.screen
        terminal.close()
        last = re.findall(r"word\d+ ", shown)[-1]
        terminal.wait_until(lambda: not Path(f"/proc/{process}").exists(), "its end")
        again = open_terminal()
        again.recollect("-c")
        again.wait_for("tell me", last.strip(), READY)
        again.say("go on", "Second answer.")
        again.press("C-d")
        assert again.wait_for_end() == 0
    assert f" {last}" in cli.ok("show", "last").out
