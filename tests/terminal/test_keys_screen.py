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
from recollect.testing import call
from tests.terminal.pilot import TerminalPlace


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


@given(st.text(max_size=200))
def test_a_title_from_anywhere_is_one_harmless_sequence(title: str) -> None:
    for sequence in (title_sequence(title, busy=True), notice_sequence(title)):
        assert sequence.count("\x1b") == 1
        assert sequence.count("\x07") == 1
        assert sequence.endswith("\x07")
        assert not any(ord(char) < 32 for char in sequence[1:-1])
