"""The same commands as lines of text: what they do, and what they say to wrong words."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from recollect.errors import RecollectError
from recollect.terminal.command_table import run_command
from recollect.terminal.search_screen import SearchScreen
from recollect.terminal.session_runner import SessionRunner
from recollect.terminal.start_options import StartOptions
from recollect.terminal.terminal_events import TerminalEvent
from recollect.terminal.text_screen import TextScreen
from recollect.testing import user
from tests.terminal.context_places import command, exchange, opened, store
from tests.terminal.pilot import TerminalPlace

Run = Callable[[str, str], Awaitable[str]]


@asynccontextmanager
async def runner_of(session: str | None) -> AsyncIterator[SessionRunner]:
    """A runner without a screen, as the line-based program has it."""
    told: list[TerminalEvent] = []
    runner = SessionRunner(StartOptions(session=session), told.append)
    task = asyncio.create_task(runner.run())
    await runner.opened()
    while session is not None and runner.session is None:
        await asyncio.sleep(0.01)
    try:
        yield runner
    finally:
        runner.close()
        await task


@pytest.fixture
def plain(terminal: TerminalPlace) -> TerminalPlace:
    (terminal.home / "settings.toml").write_text('model = "gpt-5"\n')
    return terminal


@pytest.mark.usefixtures("plain")
def test_entries_are_pinned_dropped_restored_and_recalled_by_short_ids() -> None:
    async def use() -> None:
        session, entries = await store([body for n in range(3) for body in exchange(n)])
        async with runner_of(session) as runner:
            shown = await run_command(runner, "context", "")
            assert "ENTRY" in shown
            assert "Question 2" in shown
            short = entries[2].id[-8:]
            assert short in shown
            answer = await run_command(runner, "drop", short)
            assert answer.startswith(f"left out {short}: the model now sees ")
            undo = re.search(r"/restore (\w+) undoes it", answer)
            assert undo is not None
            assert "drop" in await run_command(runner, "context", "")
            assert "restored" in await run_command(runner, "restore", undo[1])
            assert "pinned" in await run_command(runner, "pin", short)
            with pytest.raises(RecollectError, match="already pinned"):
                await run_command(runner, "pin", entries[2].id[:20])
            assert "def compute_0" in await run_command(runner, "recall", short)
            with pytest.raises(RecollectError, match="name an entry"):
                await run_command(runner, "drop", "")
            with pytest.raises(RecollectError):
                await run_command(runner, "drop", "ffffffffffff")

    asyncio.run(use())


@pytest.mark.usefixtures("plain")
def test_words_are_found_in_this_session_and_in_others() -> None:
    async def use() -> None:
        session, _ = await store([user("the blue door")], "Doors")
        await store([user("a blue window")], "Windows")
        async with runner_of(session) as runner:
            found = await run_command(runner, "search", "blue")
            assert "the blue door" in found
            assert "window" not in found
            both = await run_command(runner, "search", "blue --all")
            assert "a blue window" in both
            assert "Windows" in both
            assert "nothing found" in await run_command(runner, "search", "zebra")
            with pytest.raises(RecollectError, match="name the words"):
                await run_command(runner, "search", "--all")

    asyncio.run(use())


@pytest.mark.usefixtures("plain")
def test_a_session_is_compacted_and_brought_back() -> None:
    async def use() -> None:
        session, _ = await store([body for n in range(12) for body in exchange(n)])
        async with runner_of(session) as runner:
            answer = await run_command(runner, "compact", "keep the numbers")
            assert answer.startswith("compacted: ")
            assert "keep the numbers" in answer
            assert "again" in await run_command(runner, "compact", "undo")
            with pytest.raises(RecollectError, match="none is in force"):
                await run_command(runner, "compact", "undo")
        small, _ = await store([user("hi")])
        async with runner_of(small) as runner:
            with pytest.raises(RecollectError, match=r"was not compacted.*; /context shows"):
                await run_command(runner, "compact", "")

    asyncio.run(use())


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("name", ["context", "compact", "pin", "recall", "search"])
def test_without_a_session_each_says_what_to_do(name: str) -> None:
    async def use() -> None:
        async with runner_of(None) as runner:
            with pytest.raises(RecollectError, match="type a prompt first"):
                await run_command(runner, name, "word")

    asyncio.run(use())


def test_the_pager_searches_copies_and_shows_what_was_found(terminal: TerminalPlace) -> None:
    async def use() -> None:
        text = "\n".join(f"line {n} of many" for n in range(500)) + "\n\x1b[2J needle"
        session, entries = await store([user(text), user("a second needle")])
        async with opened(terminal, session) as driven:
            await command(driven, f"/recall {entries[0].id[-8:]}")
            await driven.wait(lambda: isinstance(driven.app.screen, TextScreen), "the pager")
            await driven.wait_shown("line 3 of many")
            await driven.press("slash")
            await driven.type("needle")
            await driven.press("enter")
            await driven.wait_shown("␛[2J needle")
            await driven.press("n", "c")
            await driven.wait_shown("copied")
            assert driven.app.clipboard == text
            await driven.press("escape")
            await command(driven, "/search needle")
            await driven.wait(lambda: isinstance(driven.app.screen, SearchScreen), "the hits")
            await driven.press("enter")
            await driven.wait(lambda: isinstance(driven.app.screen, TextScreen))
            await driven.press("q", "escape")
            await driven.wait(lambda: driven.app.screen is driven.app.chat)

    asyncio.run(use())
