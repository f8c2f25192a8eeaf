"""The terminal program as a user meets it: in a real terminal, with keys and a screen."""

from __future__ import annotations

import os
import signal

from recollect.testing import ProviderLine, call, faulty, model, says, user
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.terminal.tmux import READY, OpenTerminal, needs_tmux

pytestmark = needs_tmux

WRITES = says("I write it.", call("write_file", file_path="b.py", content="print(2)\n"))


def test_a_conversation_with_an_approval_and_back_with_its_files(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    script: list[ProviderLine] = [WRITES, "It is **done**.", "Resumed."]
    with provider(cli, "openai", script):
        terminal = open_terminal()
        terminal.recollect()
        terminal.write("please write b.py")  # what is typed while it loads is not lost
        terminal.wait_for("please write b.py", "mine")
        terminal.press("Enter")
        terminal.wait_for("I write it.", "print(2)", "Yes, once")
        assert terminal.title == "● please write b.py"
        assert not (cli.project / "b.py").exists()
        terminal.answer("y", "Yes, once")
        terminal.wait_for("It is done.", READY)
        terminal.wait_until(lambda: terminal.title == "please write b.py", "no mark in the title")
        assert (cli.project / "b.py").read_text() == "print(2)\n"
        terminal.resize(60, 18)
        terminal.wait_for("It is done.", READY)
        terminal.say("/rewind 1 both yes", "/rewind to")
        terminal.wait_until(lambda: not (cli.project / "b.py").exists(), "the file to be gone")
        terminal.press("C-c")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
        assert "recollect -r" in terminal.all_output


def test_an_interrupt_keeps_what_came_and_a_killed_program_is_resumed(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    slow = faulty("A first sentence. " + _words(2_000), pause=0.1)
    with provider(cli, "openai", [slow, "Second answer.", "Third answer."]):
        terminal = open_terminal()
        terminal.recollect()
        terminal.wait_for(READY)
        terminal.say("tell me", "esc to interrupt")
        terminal.press("Escape")
        terminal.wait_for("interrupted", READY, without=("esc to interrupt",))
        terminal.say("go on", "Second answer.")
        os.kill(terminal.process, signal.SIGKILL)
        again = open_terminal()
        again.recollect("-c")
        again.wait_for("tell me", "go on", "Second answer.", READY)
        again.say("and now", "Third answer.")
        again.press("C-d")
        assert again.wait_for_end() == 0


def test_a_compaction_is_made_and_undone_and_hostile_text_moves_nothing(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x1b[31mred \u202egnorw end."
    script: list[ProviderLine] = [f"{_words(3_000)} {evil}", f"{_words(4_000)} Second."]
    with provider(cli, "openai", script):
        terminal = open_terminal()
        terminal.recollect(columns=80, rows=24)
        terminal.wait_for(READY)
        terminal.say("first", "gnorw end.")
        assert "owned" not in terminal.title
        terminal.say("second", "Second.")
        terminal.wait_for(READY, without=("esc to interrupt",))
        terminal.resize(20, 5)
        terminal.resize(80, 24)
        terminal.say("/compact", "apply")
        terminal.press("a")
        terminal.wait_for("compacted", READY)
        terminal.say("/compact undo", "undid")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
    assert "undid" in cli.ok("show", "--last", "3").out


def _words(count: int) -> str:
    """Text in which nothing repeats."""
    return " ".join(f"word{number}" for number in range(count))


def test_escape_twice_goes_back_to_a_prompt_with_keys_alone(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    with provider(cli, "openai", ["First answer.", "Second answer.", "Another answer."]) as server:
        terminal = open_terminal()
        terminal.recollect(columns=80, rows=24)
        terminal.wait_for(READY)
        terminal.say("first prompt", "First answer.")
        terminal.say("second prompt", "Second answer.")
        terminal.wait_for(READY, without=("esc to interrupt",))
        terminal.press("Escape", "Escape")
        terminal.wait_for("first prompt", "second prompt", without=("Second answer.",))
        terminal.press("Down")
        terminal.press("Enter")
        terminal.wait_for("before: first prompt")
        terminal.press("c")
        terminal.wait_for("│ first prompt", without=("First answer.",))
        terminal.press("C-u")
        terminal.say("another prompt", "Another answer.")
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
        assert b"first prompt" not in server.requests[-1].body


def test_a_session_is_chosen_by_typing_and_opened_where_the_words_are(
    cli: Cli, open_terminal: OpenTerminal
) -> None:
    told = [user("where is the walrus"), model("in the arctic")]
    more = [each for n in range(20) for each in (user(f"prompt {n}"), model(f"answer {n}"))]
    cli.session([*told, *more], title="an old talk")
    cli.session([user("something else"), model("no")], title="another one")
    with provider(cli, "openai", ["It is cold there."]):
        terminal = open_terminal()
        terminal.recollect("-r", columns=80, rows=24)
        terminal.wait_for("an old talk", "another one")
        terminal.write("walrus")
        terminal.wait_for("⌕ an old talk", without=("another one",))
        terminal.press("Enter")
        terminal.wait_for("▌ where is the walrus", "in the arctic", READY)
        terminal.say("why there?")
        terminal.press(*["PageDown"] * 9)
        terminal.wait_for("It is cold there.", READY)
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
