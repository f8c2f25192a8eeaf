"""Every store's promises about waiting until somebody appends to a session."""

from __future__ import annotations

import asyncio

import pytest

from recollect.errors import StoreClosed, UnknownSession
from recollect.store.contract import Store
from recollect.testing import user
from tests.both_stores import OpenStore
from tests.store.stories import Play

LONG = 60.0  # seconds; a test that takes as long has failed


async def begun(store: Store, session: str, head: str | None) -> asyncio.Task[bool]:
    """Waiting for an append, which has begun and is not over."""
    waiting = asyncio.create_task(store.wait_for_append(session, head, LONG))
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    return waiting


def test_a_head_that_has_moved_already_needs_no_waiting(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        assert not await store.wait_for_append(session.id, None, 0)
        (entry,) = await store.append(session.id, [user("one")], parent=None)
        assert await store.wait_for_append(session.id, None, LONG)
        assert not await store.wait_for_append(session.id, entry.id, 0)
        assert not await store.wait_for_append(session.id, entry.id, 0.01)
        with pytest.raises(UnknownSession):
            await store.wait_for_append("f" * 32, None, LONG)

    play(story)


def test_an_append_and_a_rewind_wake_everybody_who_waits_for_the_session(
    play: Play[None],
) -> None:
    async def story(store: Store) -> None:
        session, other = await store.create(), await store.create()
        waiting = [await begun(store, session.id, None) for _ in range(3)]
        unmoved = await begun(store, other.id, None)
        (entry,) = await store.append(session.id, [user("one")], parent=None)
        assert await asyncio.gather(*waiting) == [True] * 3
        rewinding = await begun(store, session.id, entry.id)
        await store.rewind(session.id, None)
        assert await rewinding
        assert not unmoved.done()
        unmoved.cancel()

    play(story)


def test_an_append_through_another_connection_is_noticed(
    play: Play[None], reopen: OpenStore
) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        head: str | None = None
        async with reopen() as other:
            for n in range(3):
                waiting = await begun(store, session.id, head)
                (entry,) = await other.append(session.id, [user(f"{n}")], parent=head)
                assert await waiting
                head = entry.id
            await other.create()
            waiting = await begun(store, session.id, head)
            await other.branch(session.id, [user("aside")], at=None)
            done, _ = await asyncio.wait([waiting], timeout=0.7)
            assert not done  # the head is where it was
            waiting.cancel()

    play(story)


def test_closing_the_store_ends_the_waiting(play: Play[None], reopen: OpenStore) -> None:
    async def story(store: Store) -> None:
        async with reopen() as other:
            session = await other.create()
            waiting = await begun(other, session.id, None)
        assert other.closed
        with pytest.raises(StoreClosed):
            await waiting

    play(story)


def test_whoever_stops_waiting_leaves_nothing_behind(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        # a store may keep a task and a connection for all who wait, from the first one on
        assert not await store.wait_for_append(session.id, None, 0.01)
        before = asyncio.all_tasks()
        waiting = [await begun(store, session.id, None) for _ in range(5)]
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() <= before

    play(story)
