"""The prompt: what is typed, how it is sent, and what the keys do."""

from __future__ import annotations

import asyncio

from tests.terminal.pilot import TerminalPlace


def test_a_prompt_is_sent_and_answered(terminal: TerminalPlace) -> None:
    async def use() -> None:
        async with terminal.open(["hello there"]) as driven:
            await driven.say("hi")
            await driven.wait_shown("hello there")
            assert "> hi" in driven.shown()

    asyncio.run(use())
