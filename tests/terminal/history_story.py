"""What the tests of going back and of the tree share: a program whose tools change files, and the
way to a screen of its history and from there to a preview.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from recollect.runtime.runtime import Overrides
from recollect.terminal.rewind_preview_screen import RewindPreviewScreen
from recollect.terminal.start_options import StartOptions
from recollect.testing import ProviderLine
from tests.terminal.pilot import DrivenTerminal, TerminalPlace

EDIT = StartOptions(overrides=Overrides(mode="edit"))
Story = Callable[[DrivenTerminal], Awaitable[None]]


def run_story(
    terminal: TerminalPlace,
    script: Sequence[ProviderLine],
    begin: Story,
    story: Story,
    size: tuple[int, int] = (80, 24),
) -> None:
    async def use() -> None:
        async with terminal.open(script, options=EDIT, size=size) as driven:
            await begin(driven)
            await story(driven)

    asyncio.run(use())


async def open_preview(driven: DrivenTerminal) -> None:
    """Of the row with the cursor."""
    await driven.press("enter")
    await driven.wait(lambda: isinstance(driven.app.screen, RewindPreviewScreen), "the preview")
    await driven.pilot.pause()


async def choose(driven: DrivenTerminal, key: str) -> None:
    """What the preview offers under this key; until the conversation says what was done."""
    before = notices(driven)
    await driven.press(key)
    await driven.wait(lambda: driven.app.screen is driven.app.chat, "the conversation")
    await driven.wait(lambda: notices(driven) not in (before, []), "a notice")


def notices(driven: DrivenTerminal) -> list[str]:
    """What was said about going back."""
    texts = (block.text for block in driven.app.chat.transcript.blocks if block.kind == "notice")
    return [text for text in texts if "undoes this" in text]
