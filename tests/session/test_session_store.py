"""`recollect.open` and the store of sessions that it gives."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import recollect
from recollect import SessionInfo
from tests.session.test_session import in_store, texts


def test_sessions_are_found_by_id_by_its_beginning_or_as_the_last_one(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        with pytest.raises(recollect.errors.NotFound, match="no session yet"):
            await store.session()
        first = await store.create(title="one", project=tmp_path)
        await first.append(recollect.user("hello"))
        second = await store.create(title="two", model="gpt-5")
        await second.append(recollect.user("refillTokens runs twice"))
        assert (await store.session()).id == second.id
        assert texts(await store.session(first.id[:-2])) == ["hello"]
        assert [info.title for info in await store.sessions()] == ["two", "one"]
        assert [info.title for info in await store.sessions(project=str(tmp_path))] == ["one"]
        (hit,) = await store.search("tokens twice")
        assert hit.session.id == second.id
        assert await store.search("tokens twice", project=tmp_path) == ()
        await store.rename(first, "first")
        await store.trash(second)
        assert [info.title for info in await store.sessions()] == ["first"]
        assert [info.title for info in await store.sessions(trashed=True)] == ["two"]
        await store.restore(second.id)
        assert len(await store.sessions()) == 2

    in_store(tmp_path, story)


def test_other_programs_sessions_are_imported(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    message = {"id": "1", "timestamp": "2026-01-01T00:00:00Z", "type": "user", "content": "hi"}
    file.write_text(
        json.dumps(
            {
                "sessionId": "0f3a9c21-0000-4000-8000-000000000001",
                "projectHash": "a" * 64,
                "startTime": "2026-01-01T00:00:00Z",
                "lastUpdated": "2026-01-01T00:00:00Z",
                "messages": [message],
            }
        )
    )

    async def story(store: recollect.SessionStore) -> None:
        done = await store.import_file(file)
        assert texts(await store.session(done.session)) == ["hi"]
        assert (await store.import_file(str(file))).added == 0

    in_store(tmp_path, story)


def test_an_unknown_kind_of_store_is_refused_without_showing_its_password() -> None:
    async def story() -> None:
        async with recollect.open("mysql://me:secret@host/db"):
            pass

    with pytest.raises(recollect.errors.CannotOpen) as refused:
        asyncio.run(story())
    assert "cannot open mysql://me@host/db: a store is the path of" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_store_is_opened_by_its_url(tmp_path: Path) -> None:
    async def story(url: str) -> tuple[SessionInfo, ...]:
        async with recollect.open(url) as store:
            await store.create(title="by its URL")
            return await store.sessions()

    first = asyncio.run(story(f"sqlite:///{tmp_path / 'a store.db'}"))
    assert asyncio.run(story(f"sqlite:///{tmp_path}/a%20store.db"))[1:] == first
