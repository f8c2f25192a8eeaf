"""The picker of sessions in a driven program."""

from __future__ import annotations

from recollect.terminal.resume_screen import ResumeScreen
from recollect.terminal.start_options import StartOptions
from tests.terminal.pilot import DrivenTerminal

PICKER = StartOptions(initial_screen="resume")


def picker(driven: DrivenTerminal) -> ResumeScreen:
    assert isinstance(driven.app.screen, ResumeScreen)
    return driven.app.screen


def titles(driven: DrivenTerminal) -> list[str]:
    return [item.session.title for item in picker(driven).rows.items]


async def wait_listed(driven: DrivenTerminal, *expected: str) -> None:
    await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen), "the picker")
    await driven.wait(lambda: titles(driven) == [*expected], f"{expected} in the list")


async def wait_chat(driven: DrivenTerminal) -> None:
    await driven.wait(lambda: driven.app.screen is driven.app.chat, "the conversation")
