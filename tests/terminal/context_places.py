"""Sessions for the screens that show and change a context: stored before the program opens them."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from recollect.entries import Body, Entry, Message, Text
from recollect.runtime.runtime import Door, open_runtime
from recollect.terminal.start_options import StartOptions
from recollect.testing import call, model, result, user
from tests.terminal.pilot import DrivenTerminal, TerminalPlace


def silent(_text: str) -> None:
    """For what a runtime would tell."""


def exchange(number: int, *, size: int = 40) -> list[Body]:
    use = call("read_file", id=f"c{number}", file_path=f"src/module_{number}.py")
    return [
        user(f"Question {number}: never touch compute_{number}."),
        Message(role="model", parts=(Text(text="I look."), use), model="mine"),
        result(use, f"def compute_{number}(): pass\n" * size),
        model(f"compute_{number} is defined there."),
    ]


async def store(bodies: list[Body], title: str = "Modules") -> tuple[str, tuple[Entry, ...]]:
    """The id of a new session of the project, and its entries."""
    async with open_runtime(Path.cwd(), door=Door(warn=silent, accepts_bad_settings=True)) as made:
        session, _ = await made.open_session(None, prompt=title)
        return session.id, await session.append(*bodies)


def opened(
    terminal: TerminalPlace,
    session: str,
    *script: object,
    size: tuple[int, int] = (80, 24),
    settings: str = "",
) -> AbstractAsyncContextManager[DrivenTerminal]:
    return terminal.open(
        script,  # type: ignore[arg-type]
        options=StartOptions(session=session),
        size=size,
        settings=settings,
    )


async def command(driven: DrivenTerminal, text: str) -> None:
    """Type a command and send it."""
    await driven.wait(lambda: driven.app.runner.session is not None, "the session")
    await driven.type(text)
    await driven.press("enter")
