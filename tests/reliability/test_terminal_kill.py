"""kill -9 of the terminal program at a random moment: whatever stood on the screen as sent or as
waiting is in the session's log, or waits again when the session is opened the next time."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from recollect.store.open_store import open_store
from recollect.testing import ProviderLine, faulty
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.reliability.children import note_figures
from tests.terminal.tmux import RealTerminal, needs_tmux, real_terminal

pytestmark = needs_tmux

READY = "Ask, or / for commands"
_SENT = re.compile(r"(?:▌|queued:) !?(?:echo )?(prompt-\d+-\d+)\b")
_ANSWERED = re.compile(r"\b(answer-\d+)\.")


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


def _replies(noise: random.Random) -> Iterator[ProviderLine]:
    """Some at once, some slowly."""
    for number in range(1_000):
        words = " ".join(f"word{n}" for n in range(noise.choice((1, 20, 400))))
        yield faulty(f"{words} answer-{number}.", pause=noise.choice((0.0, 0.02, 0.3)))


def _use_until(terminal: RealTerminal, end: float, trial: int, noise: random.Random) -> None:
    """Type, send and interrupt, as a hasty user does."""
    number = 0
    while time.monotonic() < end:
        number += 1
        kind = noise.choice(("", "", "!echo "))
        terminal.write(f"{kind}prompt-{trial}-{number}")
        terminal.press("Enter")
        time.sleep(noise.uniform(0, min(0.5, max(0.0, end - time.monotonic()))))
        if noise.random() < 0.2:
            terminal.press("Escape")


def _stored(cli: Cli) -> str:
    """All that is in any session's log, and all that waits."""

    async def read() -> list[str]:
        async with open_store(cli.store) as store:
            sessions = await store.sessions()
            return [str(entry.body) for one in sessions for entry in await store.tree(one.id)]

    waiting = [file.read_text() for file in (cli.home / "queues").glob("*")]
    return "\n".join((*asyncio.run(read()), *waiting))


@pytest.mark.parametrize(
    "trials", [2, pytest.param(100, marks=(pytest.mark.long, pytest.mark.timeout(3_600)))]
)
def test_what_was_shown_as_sent_outlives_a_kill(cli: Cli, trials: int) -> None:
    noise = random.Random(7)
    sent: set[str] = set()
    answered: set[str] = set()
    with provider(cli, "openai", list(_replies(noise))):
        for trial in range(trials):
            with ExitStack() as stack:
                terminal = stack.enter_context(real_terminal(cli.project, cli.env(ENV)))
                terminal.recollect(*(("-c",) if trial and noise.random() < 0.7 else ()))
                terminal.wait_for(READY)
                _use_until(terminal, time.monotonic() + noise.uniform(0.1, 4), trial, noise)
                shown = terminal.screen
                os.kill(terminal.process, signal.SIGKILL)
                sent.update(_SENT.findall(shown))
                answered.update(_ANSWERED.findall(shown))
            stored = _stored(cli)
            assert [one for one in sent if one not in stored] == [], shown
    kept = [one for one in answered if f"{one}." in stored]
    # of a reply in progress, the last words may not have been saved yet
    assert len(answered) - len(kept) <= trials
    figures = {"kills": trials, "sent": len(sent), "answered": len(answered), "kept": len(kept)}
    note_figures("terminal_kill", figures)
