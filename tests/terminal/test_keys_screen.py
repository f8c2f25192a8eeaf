"""F1, and what the terminal itself is told: its title, and a notification."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from textual.binding import Binding

from recollect.runtime.permission_policy import ApprovalRequest
from recollect.terminal.keys_screen import KeysScreen, key_sections, keys_text
from recollect.terminal.notifications import notice_sequence, title_sequence
from recollect.terminal.palette import Palette
from recollect.terminal.prompt_input import PromptInput
from recollect.terminal.slash_commands import COMMANDS
from recollect.terminal.terminal_app import TerminalApp
from recollect.terminal.terminal_events import ApprovalAsked
from recollect.terminal.transcript_view import TranscriptView
from recollect.testing import call, says
from tests.terminal.pilot import TerminalPlace

WRITES = says("I write it.", call("write_file", file_path="b.py", content="print(2)\n"))


def test_every_key_and_every_command_is_on_the_screen_of_keys() -> None:
    text = keys_text(key_sections(TerminalApp), 76, Palette()).plain
    for name in ("Ctrl-R", "Ctrl-G", "Shift-Tab", "Esc", "Ctrl-O", "F1", "Ctrl-D", "F2"):
        assert name in text
    for command in COMMANDS:
        assert f"/{command.name}" in text
    for binding in PromptInput.BINDINGS:
        assert isinstance(binding, Binding)
        assert binding.description  # each says what it does


def test_f1_opens_and_closes_the_screen_of_keys(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open() as driven:
            await driven.press("f1")
            await driven.wait(lambda: isinstance(driven.app.screen, KeysScreen))
            await driven.wait_shown("search earlier prompts")
            await driven.press("q")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)

    asyncio.run(use())


def test_the_terminal_rings_only_for_a_user_who_looks_elsewhere(terminal: TerminalPlace) -> None:
    async def use(settings: str, *, away: bool) -> list[str]:
        async with terminal.open(settings=settings) as driven:
            await driven.wait(lambda: driven.app.chat.is_mounted)
            told = driven.app.notifications
            told.focused = not away
            answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            request = ApprovalRequest(call("write_file", file_path="a"), "why")
            told.add(ApprovalAsked(request, answer))  # type: ignore[arg-type]
            return list(told.sent)

    bell = '[terminal]\nnotify = "bell"'
    assert asyncio.run(use("", away=False)) == []
    assert asyncio.run(use("", away=True)) == ["\x07", "\x1b]9;recollect asks about write_file\x07"]
    assert asyncio.run(use(bell, away=True)) == ["\x07"]
    assert asyncio.run(use(bell.replace("bell", "off"), away=True)) == []


def test_a_terminal_that_never_tells_its_focus_rings_for_a_user_who_does_not_type(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        async with terminal.open() as driven:
            told = driven.app.notifications
            answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
            request = ApprovalRequest(call("write_file", file_path="a"), "why")
            await driven.type("x")
            told.add(ApprovalAsked(request, answer))  # type: ignore[arg-type]
            assert told.sent == []
            told.away_after = 0.2
            told.add(ApprovalAsked(request, answer))  # type: ignore[arg-type]
            await driven.wait(lambda: told.sent, "a bell for a question that still stands")
            assert told.sent[0] == "\x07"

    asyncio.run(use())


def test_ctrl_o_unfolds_tool_output_from_the_prompt_and_while_a_call_asks(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        terminal.write("a.py", "the first line\n")
        reads = says("I look.", call("read_file", absolute_path="a.py"))
        async with terminal.open([reads, "Done.", WRITES]) as driven:
            await driven.say("read it")
            assert driven.app.chat.prompt.input.has_focus
            await driven.press("ctrl+o")
            await driven.wait_shown("the first line")
            await driven.press("ctrl+o")
            await driven.wait(lambda: "the first line" not in driven.shown())
            await driven.type("write it")
            await driven.press("enter")
            await driven.wait_shown("Create this file?")
            await driven.press("ctrl+o")
            await driven.wait(lambda: driven.app.chat.query_one(TranscriptView).shown.unfolded)
            await driven.press("escape")

    asyncio.run(use())


@given(st.text(max_size=200))
def test_a_title_from_anywhere_is_one_harmless_sequence(title: str) -> None:
    for sequence in (title_sequence(title, busy=True), notice_sequence(title)):
        assert sequence.count("\x1b") == 1
        assert sequence.count("\x07") == 1
        assert sequence.endswith("\x07")
        assert not any(ord(char) < 32 for char in sequence[1:-1])
