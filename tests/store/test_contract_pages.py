"""Every store's promises about pages of a path."""

from __future__ import annotations

import pytest

from recollect import Entry
from recollect.errors import BadInput, UnknownEntry, UnknownSession
from recollect.store.contract import Store
from recollect.testing import user
from tests.store.stories import Play


async def check_pages(store: Store, session: str, at: str | None = None) -> None:
    path = await store.path(session, at=at)
    for limit in (0, 1, 3, 7, len(path), 1_000):
        for start in (*range(0, len(path), max(limit, 4)), len(path) - 1, len(path), 5_000):
            if start >= 0:
                page = await store.page(session, start=start, limit=limit, at=at)
                assert page == path[start : start + limit]


async def twisted(store: Store) -> tuple[str, tuple[Entry, ...]]:
    """A session whose path leads through forks, rewinds and branches."""
    first = await store.create()
    entries = await store.append(first.id, [user(f"{n}") for n in range(12)], parent=None)
    forked = await store.fork(first.id, at=entries[8].id)
    more = await store.append(forked.id, [user(f"f{n}") for n in range(5)], parent=entries[8].id)
    await store.rewind(forked.id, more[2].id)
    last = await store.append(forked.id, [user(f"r{n}") for n in range(4)], parent=more[2].id)
    await store.branch(forked.id, [user("aside")], at=entries[3].id)
    end = await store.append(forked.id, [user(f"e{n}") for n in range(3)], parent=last[-1].id)
    again = await store.fork(forked.id)
    await store.append(again.id, [user("again")], parent=end[-1].id)
    return again.id, (*entries[:9], *more[:3], *last, *end)


def test_a_page_is_a_part_of_the_path_across_forks_rewinds_and_branches(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, path = await twisted(store)
        assert (await store.path(session))[:-1] == path
        await check_pages(store, session)
        for entry in path:
            await check_pages(store, session, entry.id)

    play(story)


def test_an_empty_session_has_empty_pages(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        for start, limit in ((0, 0), (0, 5), (3, 5)):
            assert await store.page(session.id, start=start, limit=limit) == ()
        (entry,) = await store.append(session.id, [user("one")], parent=None)
        await store.rewind(session.id, None)
        assert await store.page(session.id, start=0, limit=5) == ()
        assert await store.page(session.id, start=0, limit=5, at=entry.id) == (entry,)

    play(story)


def test_a_page_of_something_unknown_is_refused(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        with pytest.raises(UnknownSession):
            await store.page("f" * 32, start=0, limit=1)
        with pytest.raises(UnknownEntry):
            await store.page(session.id, start=0, limit=1, at="f" * 32)
        for start, limit in ((-1, 5), (0, -1)):
            with pytest.raises(BadInput):
                await store.page(session.id, start=start, limit=limit)

    play(story)


def test_pages_of_a_tree_are_the_tree_whatever_their_size(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        await twisted(store)
        for session in await store.sessions():
            tree = await store.tree(session.id)
            for limit in (1, 2, 5, len(tree), 1_000):
                found: list[Entry] = []
                while page := await store.tree_page(
                    session.id, limit=limit, after=found[-1].id if found else None
                ):
                    assert len(page) <= limit
                    found += page
                assert tuple(found) == tree

    play(story)


def test_a_page_of_a_tree_follows_an_entry_of_the_session(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        assert await store.tree_page(session.id, limit=5) == ()
        with pytest.raises(UnknownEntry):
            await store.tree_page(session.id, limit=5, after="0" * 32)
        with pytest.raises(UnknownSession):
            await store.tree_page("0" * 32, limit=5)

    play(story)
