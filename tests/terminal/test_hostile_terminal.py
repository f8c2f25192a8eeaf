"""Whatever models and tools write, the terminal does none of it: no title, clipboard, mode, cursor
or paste is theirs, and the program goes on."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from recollect.testing import ProviderLine, call, faulty, says
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.terminal.hostile_pieces import (
    MARK,
    find_obeyed,
    hostile_bytes,
    hostile_piece,
    hostile_text,
)
from tests.terminal.tmux import READY, OpenTerminal, RealTerminal, needs_tmux

pytestmark = needs_tmux

ROUNDS, PIECES = 3, 60  # of replies, and as many of output
OWN_COMMAND = "!cat evil0; echo; echo over $((1 + 2))"


def test_what_is_found_in_the_output_is_what_a_terminal_obeys() -> None:
    assert find_obeyed("\x1b]2;recollect\x07\x1b[2J\x1b[?25l plain ␛[2J ␛]0;pwned") == []
    for obeyed in ("\x1b]0;x\x07", "\x1b]52;c;eA==\x07", "\x1bP$qm\x1b\\", "\x9b2J", "\u202eevil"):
        assert find_obeyed(f"text {obeyed} text"), obeyed
    assert find_obeyed(f"\x1b]2;{MARK}\x07")


def script_of(cli: Cli, source: random.Random, rounds: int, pieces: int) -> list[ProviderLine]:
    """Each prompt reads a file that no editor should open, by two tools, and says what is worse."""
    lines: list[ProviderLine] = []
    for number in range(rounds):
        (cli.project / f"evil{number}").write_bytes(hostile_bytes(source, pieces))
        read = call("read_file", "c1", file_path=f"evil{number}")
        run = call("run_shell_command", "c2", command=f"cat evil{number}")
        name = call(hostile_piece(source), "c3", **{hostile_piece(source): hostile_piece(source)})
        asked = call("run_shell_command", "c4", command=f"touch {hostile_text(source, 9)}")
        calls = (read, run, name, *([] if number else [asked]))
        lines.append(says(hostile_text(source, pieces), *calls))
        lines.append(faulty(hostile_text(source, pieces) + f"\n\n```\n\nround {number} is over"))
    error = {"error": {"message": hostile_text(source, pieces)}}
    lines.append(faulty(status=400, body=repr(error).encode()))
    return [*lines, "I am here."]


def frame(terminal: RealTerminal) -> list[str]:
    """The prompt's box and the line below it, without counts."""
    lines = terminal.screen.split("\n")
    top = next(n for n, line in enumerate(lines) if line.startswith("╭"))
    return [str(top), *lines[top : top + 3], lines[top + 3][:7]]


def texts(terminal: RealTerminal) -> list[str]:
    """What is on the screen, without the scroll bar."""
    return [re.sub("[ ▁-█]+$", "", line) for line in terminal.screen.split("\n")]


def show_output(terminal: RealTerminal) -> None:
    """Unfold the output of tools, also of those to come, and stay at the end."""
    terminal.press("C-Up")
    marked = re.compile("^▌.*round 0 is over", re.MULTILINE)
    terminal.wait_until(lambda: bool(marked.search(terminal.screen)), "the mark")
    folded = terminal.screen
    terminal.press("C-o")
    terminal.wait_until(lambda: terminal.screen != folded, "the output of tools")
    terminal.press("PageUp", "PageUp", "End")


def play(cli: Cli, terminal: RealTerminal, written: Path, seed: int, size: tuple[int, int]) -> None:
    rounds, pieces = size
    with provider(cli, "openai", ["Hello.", *script_of(cli, random.Random(seed), rounds, pieces)]):
        rules = [word for number in range(rounds) for word in ("--allow", f"cat evil{number}")]
        terminal.recollect(*rules, columns=90, rows=28, written=written)
        terminal.wait_for(READY, "mine")
        terminal.say("hello", "Hello.", READY)
        terminal.wait_for(READY, without=("esc to interrupt",))
        before = terminal.modes, terminal.clipboard, terminal.title, frame(terminal)
        for number in range(rounds):
            terminal.say(f"begin {number}")
            if not number:
                terminal.wait_for("n  No")
                terminal.answer("n", "n  No")
            terminal.wait_for(f"round {number} is over", READY)
            terminal.wait_for(READY, without=("esc to interrupt",))
            if not number:
                show_output(terminal)
        terminal.say(OWN_COMMAND, "over 3", READY)
        terminal.say("and an error", READY)
        terminal.say("are you there", "I am here.", READY)
        terminal.wait_for(READY, without=("esc to interrupt",))
        assert (terminal.modes, terminal.clipboard, terminal.title, frame(terminal)) == before
        shown = texts(terminal)
        terminal.resize(60, 20)
        terminal.wait_until(lambda: texts(terminal) != shown, "another size")
        terminal.resize(90, 28)  # all is drawn anew: nothing was where it should not be
        terminal.wait_until(lambda: texts(terminal) == shown, f"the same screen as {shown}")
        assert find_obeyed(written.read_text("utf-8", "replace")) == [], seed
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0
        assert MARK not in terminal.title
        assert terminal.clipboard == before[1]


def play_lines(cli: Cli, terminal: RealTerminal, written: Path, seed: int, pieces: int) -> None:
    """The same in `--plain`."""
    with provider(cli, "openai", script_of(cli, random.Random(seed), 1, pieces)):
        terminal.recollect("--plain", "--allow", "cat evil0", columns=90, rows=28, written=written)
        terminal.wait_for("you:", "Ctrl-D leaves")
        before = terminal.modes, terminal.clipboard, terminal.title
        terminal.say("begin", "question: ")
        terminal.say("n", "round 0 is over")
        terminal.say(OWN_COMMAND, "over 3")
        terminal.say("and an error", "error: ")
        terminal.say("are you there", "I am here.", "done in")
        assert (terminal.modes, terminal.clipboard, terminal.title) == before
        shown = written.read_text("utf-8", "replace").replace("\x1b[?2004h", "")
        assert "\x1b" not in shown
        assert find_obeyed(shown) == [], seed
        terminal.press("C-d")
        assert terminal.wait_for_end() == 0


def test_hostile_replies_and_output_do_nothing_to_the_terminal(
    cli: Cli, open_terminal: OpenTerminal, tmp_path: Path
) -> None:
    play(cli, open_terminal(), tmp_path / "written", 1, (ROUNDS, PIECES))


def test_lines_of_hostile_replies_and_output_do_nothing_to_the_terminal(
    cli: Cli, open_terminal: OpenTerminal, tmp_path: Path
) -> None:
    play_lines(cli, open_terminal(), tmp_path / "written", 1, PIECES)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 110))
def test_thousands_of_hostile_pieces_do_nothing_to_the_terminal(
    cli: Cli, open_terminal: OpenTerminal, tmp_path: Path, seed: int
) -> None:
    play(cli, open_terminal(), tmp_path / "written", seed, (6, 250))
    play_lines(cli, open_terminal(), tmp_path / "lines", seed, 1_000)
