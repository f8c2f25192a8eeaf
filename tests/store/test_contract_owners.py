"""Every store's promises about the owners of sessions, and about listing them page by page."""

from __future__ import annotations

import pytest

from recollect.errors import BadInput, UnknownSession
from recollect.store.contract import Project, SearchQuery, SessionInfo, Store
from recollect.testing import user
from tests.store.stories import Play


async def owned(store: Store, owner: str, *texts: str) -> SessionInfo:
    session = await store.create(owner=owner)
    await store.append(session.id, [user(text) for text in texts], parent=None)
    return await store.session(session.id)


def test_a_session_belongs_to_its_owner(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        ours = await store.create()
        theirs = await store.create(owner="anna 模型")
        assert (ours.owner, theirs.owner) == ("", "anna 模型")
        assert (await store.session(theirs.id)).owner == "anna 模型"
        assert await store.sessions(owner="anna 模型") == (theirs,)
        assert await store.sessions(owner="") == (ours,)
        assert await store.sessions(owner="anna") == ()
        assert set(await store.sessions()) == {ours, theirs}
        await store.trash(theirs.id)
        assert await store.sessions(owner="anna 模型") == ()
        assert [s.id for s in await store.sessions(owner="anna 模型", trashed=True)] == [theirs.id]

    play(story)


def test_a_fork_belongs_to_the_same_owner_unless_another_is_named(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session = await owned(store, "anna", "one")
        assert (await store.fork(session.id)).owner == "anna"
        assert (await store.fork(session.id, owner="bo")).owner == "bo"
        assert (await store.fork(session.id, owner="")).owner == ""

    play(story)


def test_an_owner_survives_renaming_trash_and_reopening(play: Play[str]) -> None:
    async def story(store: Store) -> str:
        session = await owned(store, "anna", "one")
        await store.rename(session.id, "another title")
        await store.trash(session.id)
        return (await store.restore(session.id)).id

    session = play(story)

    async def reopened(store: Store) -> str:
        return (await store.session(session)).owner

    assert play(reopened) == "anna"


@pytest.mark.parametrize("owner", ["a\0b", "a\nb", "\ud800", "x" * 201])
def test_an_owner_that_no_store_could_hold_is_refused(play: Play[None], owner: str) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        with pytest.raises(BadInput, match="printable"):
            await store.create(owner=owner)
        with pytest.raises(BadInput, match="printable"):
            await store.fork(session.id, owner=owner)
        assert await store.sessions() == (session,)

    play(story)


def test_a_search_finds_only_sessions_of_the_owner(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        anna = await owned(store, "anna", "the limiter fails", "nobody else said zebra")
        bo = await owned(store, "bo", "the limiter works")
        for owner, session in (("anna", anna), ("bo", bo)):
            query = SearchQuery("limiter", owner=owner)
            assert [hit.session.id for hit in await store.search(query)] == [session.id]
            assert [hit.session.id for hit in (await store.rank(query)).hits] == [session.id]
        foreign = SearchQuery("limiter", session=anna.id, owner="bo")
        assert await store.search(foreign) == ()
        assert (await store.rank(foreign)).hits == ()
        assert (await store.rank(SearchQuery("zebra", owner="bo"))).nowhere == ("zebra",)
        assert len(await store.search(SearchQuery("limiter"))) == 2

    play(story)


def test_a_fork_of_anothers_session_is_searched_with_what_it_inherited(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        anna = await owned(store, "anna", "the limiter fails")
        forked = await store.fork(anna.id, owner="bo")
        query = SearchQuery("limiter", session=forked.id, owner="bo")
        assert len((await store.rank(query)).hits) == 1

    play(story)


def test_pages_of_sessions_follow_each_other_in_the_order_of_the_whole_list(
    play: Play[None],
) -> None:
    async def story(store: Store) -> None:
        project = Project("/somewhere")
        for n in range(23):  # many were last used at the same moment
            owner = "anna" if n % 3 else "bo"
            await store.create(
                created=1_000 + n // 5, owner=owner, project=project if n % 2 else None
            )
        for n in (2, 7):
            await store.trash((await store.sessions())[n].id)
        for of in (None, "anna", "bo"):
            for within in (None, project):
                whole = await store.sessions(owner=of, project=within)
                paged: list[SessionInfo] = []
                while True:
                    last = (paged[-1].used, paged[-1].id) if paged else None
                    page = await store.sessions(owner=of, project=within, limit=4, before=last)
                    paged += page
                    if len(page) < 4:
                        break
                assert tuple(paged) == whole
        assert await store.sessions(limit=0) == ()
        trashed = await store.sessions(trashed=True)
        after = (trashed[0].used, trashed[0].id)
        assert await store.sessions(trashed=True, before=after) == trashed[1:]

    play(story)


def test_a_page_after_an_unknown_session_is_refused(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        await store.create()
        with pytest.raises(UnknownSession):
            await store.sessions(before=(5, "f" * 32))

    play(story)
