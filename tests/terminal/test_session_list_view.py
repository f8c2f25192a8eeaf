"""The list of sessions: what a row shows in its width, and what typing in it does."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from recollect.display.session_list import read_details
from recollect.entries import Compaction, Restore
from recollect.store.sqlite import SqliteStore
from recollect.terminal.resume_screen import ResumeScreen
from tests.terminal.pilot import TerminalPlace
from tests.terminal.session_picker import PICKER, wait_listed
from tests.terminal.stored_sessions import add_session, exchange, in_store


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


def test_every_letter_finds_also_those_that_are_keys_of_other_screens(
    terminal: TerminalPlace,
) -> None:
    async def use() -> None:
        await add_session(terminal, "quick import")
        await add_session(terminal, "another")
        async with terminal.open(options=PICKER) as driven:
            await wait_listed(driven, "another", "quick import")
            await driven.type("qu")
            await wait_listed(driven, "quick import")
            await driven.press("backspace", "backspace")
            await wait_listed(driven, "another", "quick import")
            await driven.type("im")
            await wait_listed(driven, "quick import")

    asyncio.run(use())


def test_a_long_title_is_cut_visibly_and_leaves_room_for_age_turns_and_folder(
    terminal: TerminalPlace, tmp_path: Path
) -> None:
    async def use() -> None:
        far = tmp_path / "a-path" / "with-many-folders" / "whose-names-are-long" / "leaf"
        far.mkdir(parents=True)
        await add_session(terminal, "标题很长 " * 20, folder=far)
        async with terminal.open(options=PICKER, size=(100, 30)) as driven:
            await driven.wait(lambda: isinstance(driven.app.screen, ResumeScreen))
            await driven.press("tab")
            await driven.wait_shown("just now · 1 turn · 1,010 tokens · m-1 ")
            title = next(line for line in driven.shown().splitlines() if "❯" in line)
            assert re.search(r"…  +leaf *│", title), title

    asyncio.run(use())


def test_tokens_are_those_without_a_compaction_that_was_undone(terminal: TerminalPlace) -> None:
    async def use() -> None:
        made = await add_session(terminal, "undone", exchange("one", "two", 9_000))
        body = Compaction("COMPRESSED", "short", tokens_before=9_010, tokens_after=300)

        async def compact(store: SqliteStore) -> None:
            entry = (await store.append(made.id, [body], parent=made.head))[0]
            assert (await read_details(store, await store.session(made.id))).tokens == 300
            await store.append(made.id, [Restore((entry.id,))], parent=entry.id)
            assert (await read_details(store, await store.session(made.id))).tokens == 9_010

        await in_store(terminal, compact)

    asyncio.run(use())
