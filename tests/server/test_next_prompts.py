"""What an active session keeps from one prompt to the next is given up when it changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from recollect.server.access import LOCAL_USER
from recollect.testing import ProviderServer
from recollect.workspace.memory_files import MemorySources
from recollect.workspace.memory_reader import MemoryReader
from recollect.workspace.trusted_folders import trust_folder
from tests.server.hubs import opened_hub, scripted_provider
from tests.server.test_session_hub import answer


def contents(server: ProviderServer, number: int) -> list[str]:
    """The texts of the messages of a request."""
    return [str(message["content"]) for message in server.requests[number].json["messages"]]


def test_the_next_prompt_repeats_the_bytes_before_it_and_sees_a_memory_file_written_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            session = await hub.create(LOCAL_USER)
            await answer(await hub.prompt(LOCAL_USER, session, "a"))
            (tmp_path / "project" / "AGENTS.md").write_text("Use tabs.")
            await answer(await hub.prompt(LOCAL_USER, session, "b"))
            await answer(await hub.prompt(LOCAL_USER, session, "c"))

    with scripted_provider(tmp_path / "home", monkeypatch, ["one", "two", "three"]) as server:
        (tmp_path / "project").mkdir()
        trust_folder(tmp_path / "project")
        asyncio.run(story())
        before, then, after = (contents(server, number) for number in range(3))
        assert then[: len(before)] == before
        assert after[: len(then)] == then
        assert not any("Use tabs." in text for text in before)
        assert sum("Use tabs." in text for text in after) == 1


def test_a_key_that_changes_is_used_for_the_next_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            session = await hub.create(LOCAL_USER)
            await answer(await hub.prompt(LOCAL_USER, session, "a"))
            monkeypatch.setenv("MY_KEY", "sk-fake-another-0123456789")
            await answer(await hub.prompt(LOCAL_USER, session, "b"))

    with scripted_provider(tmp_path / "home", monkeypatch, ["one", "two"]) as server:
        asyncio.run(story())
        keys = [request.headers["authorization"] for request in server.requests]
        assert keys == ["Bearer sk-fake-0123456789abcdef", "Bearer sk-fake-another-0123456789"]


def test_what_a_rewind_left_is_not_sent_with_the_next_prompt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with opened_hub(tmp_path) as hub:
            session = await hub.create(LOCAL_USER)
            await answer(await hub.prompt(LOCAL_USER, session, "alpha"))
            kept = (await hub.find(LOCAL_USER, session.id)).head
            await answer(await hub.prompt(LOCAL_USER, session, "bravo"))
            rewound = await hub.store.rewind(session.id, kept)
            await answer(await hub.prompt(LOCAL_USER, rewound, "charlie"))

    with scripted_provider(tmp_path / "home", monkeypatch, ["one", "two", "three"]) as server:
        asyncio.run(story())
        first, last = contents(server, 0), contents(server, 2)
        assert last == [*first, "one", "charlie"]


def test_sessions_that_ask_for_memory_together_share_a_read_that_begins_after_they_asked(
    tmp_path: Path,
) -> None:
    looked: list[Path] = []

    def trusted(folder: Path) -> bool:  # asked once in every read
        looked.append(folder)
        return True

    async def story() -> list[tuple[str, ...]]:
        read = MemoryReader(
            MemorySources(cwd=tmp_path, root=tmp_path, home=tmp_path / "home", trusted=trusted)
        )
        early = asyncio.create_task(read())
        while not looked:  # it is being read
            await asyncio.sleep(0)
        (tmp_path / "AGENTS.md").write_text("Use tabs.")
        late = await asyncio.gather(*(read() for _ in range(50)))
        await early
        return [tuple(file.text for file in found.files) for found in late]

    assert asyncio.run(story()) == [("Use tabs.",)] * 50
    assert len([folder for folder in looked if folder == tmp_path]) <= 6  # of two reads
