"""Every store's promises about sessions taken over from another store, and about their contents."""

from __future__ import annotations

import msgspec
import pytest

from recollect.errors import UnknownEntry, UnknownSession
from recollect.store.contract import Project, SessionInfo, Store
from recollect.testing import user
from tests.store.stories import Play, grown

ELSEWHERE = SessionInfo(
    id="a" * 32,
    title="from elsewhere",
    head=None,
    entries=0,
    created=1_000,
    used=1_000,
    trashed=5_000,
    owner="anna",
)
PROJECT = Project("/not/here/模型", git="0" * 40, inode="1:2", names=("a.py", "b.py"))


def test_an_adopted_session_is_as_it_was_described(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        adopted = await store.adopt(ELSEWHERE, PROJECT)
        assert adopted == msgspec.structs.replace(ELSEWHERE, project=PROJECT.path)
        assert await store.project_of(adopted.id) == PROJECT
        assert await store.sessions(trashed=True) == (adopted,)

    play(story)


def test_adopting_again_changes_the_description_and_leaves_the_entries_alone(
    play: Play[None],
) -> None:
    async def story(store: Store) -> None:
        await store.adopt(ELSEWHERE, PROJECT)
        entries = await store.append(ELSEWHERE.id, [user("one"), user("two")], parent=None)
        await store.rewind(ELSEWHERE.id, entries[0].id)
        renamed = msgspec.structs.replace(ELSEWHERE, title="renamed", trashed=None, owner="bo")
        again = await store.adopt(renamed, None)
        assert (again.title, again.trashed, again.owner) == ("renamed", None, "bo")
        assert (again.head, again.entries, again.project) == (entries[0].id, 1, None)
        assert await store.tree(again.id) == entries

    play(story)


def test_an_adopted_fork_shares_its_beginning(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "one", "two", "three")
        described = msgspec.structs.replace(ELSEWHERE, forked_from=entries[1].id)
        forked = await store.adopt(described, None)
        assert (forked.head, forked.entries) == (entries[1].id, 2)
        assert forked.forked_from == entries[1].id
        assert await store.path(forked.id) == entries[:2]
        assert await store.tree(forked.id) == ()
        assert await store.path(session.id) == entries
        unknown = msgspec.structs.replace(ELSEWHERE, id="b" * 32, forked_from="f" * 32)
        with pytest.raises(UnknownEntry):
            await store.adopt(unknown, None)
        with pytest.raises(UnknownSession):
            await store.session(unknown.id)

    play(story)


def test_adopted_projects_stay_as_many_as_they_were(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        projects = (
            None,
            PROJECT,
            Project("/not/here/模型"),  # the same path, without a history
            Project("/not/here/模型", inode="1:2", names=("a.py",)),
            Project("/not/here/模型", git="1" * 40),
        )
        for n, project in enumerate(projects):
            await store.adopt(msgspec.structs.replace(ELSEWHERE, id=f"{n}" * 32), project)
        for n, project in enumerate(projects):
            assert await store.project_of(f"{n}" * 32) == project
        with pytest.raises(UnknownSession):
            await store.project_of("f" * 32)

    play(story)


def test_all_stored_bytes_can_be_listed(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        assert await store.blobs() == ()
        digests = sorted([await store.put(f"content {n}".encode()) for n in range(25)])
        listed: list[str] = []
        while page := await store.blobs(after=listed[-1] if listed else "", limit=10):
            listed += page
        assert listed == digests
        for digest in listed:
            assert (await store.blob(digest)).startswith(b"content")

    play(story)


def test_a_store_says_how_much_it_holds(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        await grown(store, "one", "two")
        await store.trash((await store.create(owner="anna")).id)
        await store.put(b"content")
        facts = await store.facts()
        held = {"sessions": 1, "trashed_sessions": 1, "owners": 1, "entries": 2, "contents": 1}
        assert {name: facts[name] for name in held} == held
        assert facts["kind"]
        assert isinstance(facts["format"], int)

    play(story)
