"""Prompts that wait, and prompts that were not stored, outlive whatever ends the program."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from recollect.runtime.prompt_run import RunOptions
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_events import QueueChanged, TerminalEvent
from tests.cli.provider import ENV, provider
from tests.cli.runner import Cli
from tests.terminal.pilot import TerminalPlace
from tests.terminal.plain_process import plain
from tests.terminal.tmux import RealTerminal, needs_tmux, real_terminal

READY = "Ask, or / for commands"


@pytest.fixture
def open_terminal(cli: Cli) -> Iterator[Callable[[], RealTerminal]]:
    """Terminals of one user."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(real_terminal(cli.project, cli.env(ENV)))


def _queue(terminal: RealTerminal) -> None:
    """Run a command that does not end, and send a prompt and a command meanwhile."""
    terminal.recollect()
    terminal.wait_for(READY)
    for text, shown in (
        ("!echo be''gan; sleep 600", "began"),
        ("two", "queued: two"),
        ("!echo th''ree", "queued: !echo th''ree"),
    ):
        terminal.write(text)
        terminal.wait_for(text)
        terminal.press("Enter")
        terminal.wait_for(shown)


def _files(cli: Cli) -> list[Path]:
    return list((cli.home / "queues").glob("*"))


@needs_tmux
def test_what_waits_when_the_program_is_killed_waits_again(
    cli: Cli, open_terminal: Callable[[], RealTerminal]
) -> None:
    with provider(cli, "openai", ["Second answer."]):
        first = open_terminal()
        _queue(first)
        os.kill(first.process, signal.SIGKILL)
        again = open_terminal()
        again.recollect("-c")
        again.wait_for("3 prompts waited when this session was left", "held, nothing is lost")
        again.wait_for("queued: !echo be''gan", "queued: two", "queued: !echo th''ree", READY)
        again.press("Enter")
        again.wait_for("esc to interrupt", without=("held",))
        again.press("Escape")
        again.wait_for("2 prompts held, nothing is lost")
        again.press("Enter")
        again.wait_for("Second answer.", "three", without=("queued",))
        again.press("C-d")
        assert again.wait_for_end() == 0
    told = cli.ok("show").out
    assert (
        told.index("one") < told.index("two") < told.index("Second answer.") < told.index("three")
    )
    assert _files(cli) == []


@needs_tmux
def test_what_waits_when_the_user_leaves_is_told_and_shown_by_the_plain_program(
    cli: Cli, open_terminal: Callable[[], RealTerminal]
) -> None:
    with provider(cli, "openai", ["Another answer."]) as server:
        first = open_terminal()
        _queue(first)
        first.press("C-c")
        first.wait_for("2 prompts held, nothing is lost")
        first.press("C-d")
        first.wait_for_end()
        assert "2 prompts not sent yet, kept with the session:\ntwo\n" in first.all_output
        told = plain(cli, "four", session="last")
        assert "note: this waited when the session was left: two\n" in told.out
        assert "note: this waited when the session was left: !echo th''ree\n" in told.out
        assert "Another answer." in told.out
        assert len(server.requests) == 1
    assert _files(cli) == []


@needs_tmux
def test_a_damaged_file_of_prompts_is_put_aside_and_said(
    cli: Cli, open_terminal: Callable[[], RealTerminal]
) -> None:
    with provider(cli, "openai", ["First answer."]):
        first = open_terminal()
        _queue(first)
        os.kill(first.process, signal.SIGKILL)
        first.wait_for_end()
        (file,) = _files(cli)
        file.write_bytes(file.read_bytes()[:-9])
        told = plain(cli, "four", session="last")
        assert "the prompts that waited here cannot be read; they are in" in told.out
        assert "First answer." in told.out
        assert [one.name for one in _files(cli)] == [f"{file.name}.damaged"]


def test_a_prompt_that_no_model_can_take_goes_back_into_the_field(terminal: TerminalPlace) -> None:
    async def use() -> None:
        options = StartOptions(run=RunOptions(model="claude-sonnet-4-5"))
        async with terminal.open(options=options) as driven:
            await driven.type("a long thought")
            await driven.press("enter")
            await driven.wait_shown("no API key")
            await driven.wait(lambda: driven.app.chat.prompt.input.text == "a long thought")
            blocks = driven.app.chat.transcript.blocks
            assert [block.kind for block in blocks if block.kind == "user"] == []
            await driven.press("ctrl+c")
            await driven.wait(lambda: not driven.app.chat.prompt.input.text)

    asyncio.run(use())


def test_what_is_in_no_file_yet_is_not_called_queued() -> None:
    told: list[TerminalEvent] = []
    runner = SessionRunner(StartOptions(), told.append)
    runner.send("before there is a session")
    (changed,) = told
    assert isinstance(changed, QueueChanged)
    assert [one.text for one in changed.waiting] == ["before there is a session"]
    assert not changed.kept
