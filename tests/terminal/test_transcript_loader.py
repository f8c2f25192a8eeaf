"""A session is loaded from its end, and what a run adds meanwhile stays in its place."""

from __future__ import annotations

import asyncio
from pathlib import Path

from recollect.entries import Note, Text
from recollect.store.sqlite import SqliteStore
from recollect.terminal.found_passage import FoundPassage
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


def test_what_was_found_is_loaded_however_much_is_before_it(tmp_path: Path) -> None:
    async def story(store: SqliteStore) -> None:
        text = "x" * 90_000
        prompts = (user(text, Text(f"prompt {n}")) for n in range(480))
        session = await new_session(store, *prompts)
        entries = await store.path(session.id)
        blocks = BlockList()
        loader = TranscriptLoader(blocks, store, session)
        loading = asyncio.create_task(loader.open())
        number = await loader.find(FoundPassage(session.id, entries[100].id))
        assert number is not None
        assert blocks.blocks[number - blocks.first].text.endswith("prompt 100")
        assert len(blocks.blocks) < len(entries)  # the rest is not wanted
        loading.cancel()

    in_store(tmp_path, story)


def test_an_entry_of_a_branch_that_was_left_is_not_found_and_one_since_then_is(
    tmp_path: Path,
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await new_session(store, *(user(f"prompt {n}") for n in range(20)))
        blocks = BlockList()
        loader = TranscriptLoader(blocks, store, session)
        await loader.open()
        left = (await store.path(session.id))[-1]
        await session.rewind((await store.path(session.id))[10])
        await loader.reload()
        assert await loader.find(FoundPassage(session.id, left.id)) is None
        (new,) = await session.append(Note(text="new"))
        blocks.add_entries([new])
        assert await loader.find(FoundPassage(session.id, new.id)) == blocks.find(new.id)
        await session.rewind(None)
        await loader.reload()
        assert await loader.find(FoundPassage(session.id, left.id)) is None

    in_store(tmp_path, story)
