"""A session is loaded from its end, and what a run adds meanwhile stays in its place."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recollect.store.sqlite import SqliteStore
from recollect.terminal.transcript_blocks import BlockList
from recollect.terminal.transcript_loader import TranscriptLoader
from recollect.testing import user
from tests.agent.harness import in_store, new_session


def test_what_is_added_while_it_loads_comes_last(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, *(user(f"prompt {n}") for n in range(700)))
        blocks = BlockList()
        loader = TranscriptLoader(blocks, store, session)
        loading = asyncio.create_task(loader.open())
        blocks.add_said("new")
        await session.append(user("new"))
        await loading
        assert [block.text for block in blocks.blocks] == [
            *(f"prompt {n}" for n in range(700)), "new",
        ]  # fmt: skip

    in_store(tmp_path, story)


def test_a_rewind_takes_away_the_end_and_nothing_else(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, *(user(f"prompt {n}") for n in range(500)))
        blocks = BlockList()
        loader = TranscriptLoader(blocks, store, session)
        await loader.open()
        kept = blocks.blocks[10]
        entries = await store.path(session.id)
        for last in (490, 30):
            await session.rewind(entries[last])
            await loader.reload()
            assert [block.text for block in blocks.blocks] == [
                f"prompt {n}" for n in range(last + 1)
            ]
            assert blocks.blocks[10] is kept

    in_store(tmp_path, story)


def test_a_path_of_which_nothing_is_loaded_is_shown_whole(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, *(user(f"prompt {n}") for n in range(300)))
        blocks = BlockList()
        await TranscriptLoader(blocks, store, session).reload()
        assert [block.text for block in blocks.blocks] == [f"prompt {n}" for n in range(300)]

    in_store(tmp_path, story)
