"""Every store's promises about sessions: paths, forks, rewinds, titles, the trash, ids."""

from __future__ import annotations

import pytest

from recollect import Entry
from recollect.entries import Source, Title
from recollect.errors import AmbiguousId, BadInput, HeadMoved, UnknownEntry, UnknownSession
from recollect.store.contract import Store
from recollect.store.ids import derived_id, now
from recollect.testing import model, user
from tests.store.stories import Play, grown, texts


def test_windows_are_parts_of_the_path(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, *(f"{n}" for n in range(30)))
        forked = await store.fork(session.id, at=entries[19].id)
        more = await store.append(forked.id, [user("x"), user("y")], parent=entries[19].id)
        path = (*entries[:20], *more)
        assert await store.path(forked.id) == path
        for n in (0, 1, 2, 3, 21, 22, 99):
            assert await store.path(forked.id, last=n) == (path[-n:] if n else ())
        for n, entry in enumerate(path):
            assert await store.path(forked.id, since=entry.id) == path[n + 1 :]
            assert await store.path(forked.id, at=entry.id) == path[: n + 1]
            assert await store.path(forked.id, at=entry.id, last=2) == path[: n + 1][-2:]
        with pytest.raises(UnknownEntry):
            await store.path(forked.id, since=entries[25].id)
        with pytest.raises(UnknownEntry):
            await store.path(forked.id, at=entries[25].id)

    play(story)


def test_a_fork_shares_the_past_and_does_not_change_the_original(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "one", "two", "three")
        forked = await store.fork(session.id, at=entries[1].id, title="other way")
        assert (forked.head, forked.entries) == (entries[1].id, 2)
        assert (forked.forked_from, forked.title) == (entries[1].id, "other way")
        (new,) = await store.append(forked.id, [user("four")], parent=entries[1].id)
        assert texts(await store.path(forked.id)) == ["one", "two", "four"]
        assert await store.path(session.id) == entries
        twice = await store.fork(forked.id)
        assert await store.path(twice.id) == (*entries[:2], new)
        empty = await store.fork((await store.create()).id)
        assert await store.path(empty.id) == ()

    play(story)


def test_a_rewind_moves_the_head_and_keeps_everything(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "one", "two", "three")
        rewound = await store.rewind(session.id, entries[0].id)
        assert (rewound.head, rewound.entries) == (entries[0].id, 1)
        (other,) = await store.append(session.id, [user("2b")], parent=entries[0].id)
        assert await store.path(session.id) == (entries[0], other)
        assert await store.tree(session.id) == (*entries, other)
        await store.rewind(session.id, entries[2].id, head=other.id)
        assert await store.path(session.id) == entries
        await store.rewind(session.id, None)
        assert await store.path(session.id) == ()
        (again,) = await store.append(session.id, [user("anew")], parent=None)
        assert await store.path(session.id) == (again,)

    play(story)


def test_a_branch_leaves_the_head_where_it_is(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "one", "two")
        (aside,) = await store.branch(session.id, [user("2b")], at=entries[0].id)
        assert aside.parent == entries[0].id
        assert await store.path(session.id) == entries
        assert await store.path(session.id, at=aside.id) == (entries[0], aside)
        (root,) = await store.branch(session.id, [user("1b")], at=None)
        assert set(await store.tree(session.id)) == {*entries, aside, root}
        with pytest.raises(UnknownEntry):
            await store.branch(session.id, [user("x")], at="f" * 32)
        await store.append(session.id, [user("three")], parent=entries[1].id)
        assert texts(await store.path(session.id)) == ["one", "two", "three"]

    play(story)


def test_a_rewind_to_an_unknown_entry_raises_and_changes_nothing(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "one", "two")
        _, foreign = await grown(store, "other")
        for target in ("f" * 32, "", "nonsense", foreign[0].id):
            with pytest.raises(UnknownEntry):
                await store.rewind(session.id, target)
        with pytest.raises(HeadMoved):
            await store.rewind(session.id, entries[0].id, head=entries[0].id)
        assert await store.path(session.id) == entries

    play(story)


def test_the_title_is_the_first_prompt_until_the_user_names_the_session(
    play: Play[None],
) -> None:
    async def story(store: Store) -> None:
        session = await store.create()
        await store.append(
            session.id, [model("hello"), user("  fix\n the \x1b[31m bug ")], parent=None
        )
        assert (await store.session(session.id)).title == "fix the bug"
        named = await store.rename(session.id, "the bug 🐞")
        assert named.title == "the bug 🐞"
        path = await store.path(session.id)
        assert path[-1].body == Title(title="the bug 🐞")
        await store.append(session.id, [user("another prompt")], parent=named.head)
        assert (await store.session(session.id)).title == "the bug 🐞"
        with pytest.raises(BadInput):
            await store.rename(session.id, " \n ")

    play(story)


def test_trashed_sessions_are_hidden_and_can_be_restored(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "keep me")
        other, _ = await grown(store, "other")
        await store.trash(session.id)
        assert [s.id for s in await store.sessions()] == [other.id]
        (trashed,) = await store.sessions(trashed=True)
        assert trashed.id == session.id
        assert trashed.trashed is not None
        assert await store.path(session.id) == entries
        restored = await store.restore(session.id)
        assert restored.trashed is None
        assert {s.id for s in await store.sessions()} == {session.id, other.id}

    play(story)


def test_the_last_used_session_is_listed_first(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        old, entries = await grown(store, "old")
        new, _ = await grown(store, "new")
        later = Entry("a" * 32, None, now() + 1_000, user("again"))
        await store.append(old.id, [later], parent=entries[-1].id)
        assert [s.id for s in await store.sessions()] == [old.id, new.id]

    play(story)


def test_any_unambiguous_prefix_of_an_id_is_accepted(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        await store.create(id="aaaa" + "0" * 28)
        await store.create(id="aaab" + "0" * 28)
        assert (await store.session("AAAB")).id.startswith("aaab")
        assert (await store.session("aaaa0000-0000")).id.startswith("aaaa")
        with pytest.raises(AmbiguousId) as caught:
            await store.session("aaa")
        assert len(caught.value.candidates) == 2
        for unknown in ("b", "", "zz", "a" * 33, "aaaa\x00"):
            with pytest.raises(UnknownSession):
                await store.session(unknown)
        session, entries = await grown(store, "find me")
        assert await store.entry(entries[0].id[:20]) == (session, entries[0])
        with pytest.raises(UnknownEntry):
            await store.entry("ffff")

    play(story)


def test_sources_of_sessions_that_are_imported_later_are_found_too(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        seen: list[str] = []
        for number in range(3):
            derived = derived_id("a", str(number))
            await store.create(id=derived)
            source = Source(format="gemini", name=f"{number}.json", size=number)
            await store.append(derived, [source, user("hi")], parent=None)
            seen.append(derived)
            found = await store.sources()
            assert [found[one].name for one in seen] == [f"{n}.json" for n in range(number + 1)]
            assert len(found) == number + 1

    play(story)
