"""The first screen of somebody who has no model yet, in a real terminal."""

from __future__ import annotations

import pytest

from tests.terminal.tmux import READY, OpenTerminal, RealTerminal, needs_tmux

pytestmark = needs_tmux
OFFERS = "No model is set up"


@pytest.fixture
def terminal(open_terminal: OpenTerminal) -> RealTerminal:
    opened = open_terminal()
    opened.recollect()
    opened.wait_for(READY, OFFERS)
    return opened


def test_what_is_typed_goes_to_the_prompt_and_not_to_the_offers(terminal: RealTerminal) -> None:
    terminal.write("why is it slow?")
    screen = terminal.wait_for("│ why is it slow?", without=[OFFERS])
    assert "smollm2" in screen  # nothing was chosen


def test_escape_goes_on_without(terminal: RealTerminal) -> None:
    terminal.press("Escape")
    screen = terminal.wait_for(READY, without=[OFFERS])
    assert "smollm2" in screen
    terminal.write("hello")
    terminal.wait_for("│ hello")


def test_enter_takes_the_offer_under_the_cursor(terminal: RealTerminal) -> None:
    terminal.press("Down")
    terminal.press("Enter")
    terminal.wait_for("Clients get twice the requests", without=[OFFERS])  # the recorded session
