"""What every store promises. Each store that we have passes these tests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect import Entry, Message, Note, SessionInfo, Text, Title, open_store
from recollect.entries import Body
from recollect.errors import (
    AlreadyExists,
    AmbiguousId,
    BadInput,
    HeadMoved,
    UnknownBlob,
    UnknownEntry,
    UnknownSession,
)
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from tests.strategies import bodies

T = TypeVar("T")
Play = Callable[[Callable[[SqliteStore], Awaitable[T]]], T]


@pytest.fixture
def play(tmp_path: Path) -> Play[T]:
    """Runs a story on a store in a file of its own; each call opens the store anew."""

    def run(story: Callable[[SqliteStore], Awaitable[T]]) -> T:
        async def opened() -> T:
            async with open_store(tmp_path / "home" / "store.db") as store:
                done = await story(store)
                assert store.warnings == []
                return done

        return asyncio.run(opened())

    return run


async def grown(store: SqliteStore, *texts: str) -> tuple[SessionInfo, tuple[Entry, ...]]:
    session = await store.create()
    entries = await store.append(session.id, [user(text) for text in texts], parent=None)
    return await store.session(session.id), entries


def texts(entries: tuple[Entry, ...]) -> list[str]:
    found = []
    for entry in entries:
        assert isinstance(entry.body, Message)
        part = entry.body.parts[0]
        assert isinstance(part, Text)
        found.append(part.text)
    return found


def test_what_was_appended_is_read_back_in_another_process_of_the_story(play: Play[object]) -> None:
    read = call("read_file", path="a.py")

    async def write(store: SqliteStore) -> tuple[Entry, ...]:
        session = await store.create(title="a title")
        talk = [user("look at a.py"), model("I read it", read), result(read, "x = 1")]
        return await store.append(session.id, talk, parent=None)

    written = play(write)

    async def reread(store: SqliteStore) -> tuple[Entry, ...]:
        (session,) = await store.sessions()
        assert (session.title, session.entries) == ("a title", 3)
        return await store.path(session.id)

    assert play(reread) == written


@settings(max_examples=50)
@given(items=st.lists(bodies, min_size=1, max_size=6))
def test_every_kind_of_entry_is_kept_exactly(
    items: list[Body], tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def story() -> None:
        path = tmp_path_factory.mktemp("store") / "store.db"
        async with open_store(path) as store:
            session = await store.create()
            await store.append(session.id, items, parent=None)
        async with open_store(path) as store:
            assert [entry.body for entry in await store.path(session.id)] == items

    asyncio.run(story())


def test_a_stale_writer_is_told_where_the_head_is_and_writes_nothing(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        session, entries = await grown(store, "one", "two")
        with pytest.raises(HeadMoved) as caught:
            await store.append(session.id, [user("late")], parent=entries[0].id)
        assert caught.value.actual == entries[1].id
        with pytest.raises(HeadMoved):
            await store.append(session.id, [user("late")], parent=None)
        assert await store.path(session.id) == entries

    play(story)


def test_of_many_tasks_that_race_for_one_head_one_wins(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        session, entries = await grown(store, "start")
        tries = (
            store.append(session.id, [user(f"task {i}")], parent=entries[0].id) for i in range(50)
        )
        outcomes = await asyncio.gather(*tries, return_exceptions=True)
        won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert len(won) == 1
        assert sum(isinstance(outcome, HeadMoved) for outcome in outcomes) == 49
        assert await store.path(session.id) == (*entries, *won[0])

    play(story)


def test_a_task_that_writes_without_a_pause_lets_others_write_too(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        busy, other = await store.create(), await store.create()

        async def write_on() -> None:
            head = None
            while not await_other.done():
                head = (await store.append(busy.id, [user("more")], parent=head))[-1].id

        await_other = asyncio.create_task(store.append(other.id, [user("me too")], parent=None))
        await asyncio.wait_for(write_on(), timeout=60)
        assert texts(await store.path(other.id)) == ["me too"]

    play(story)


def test_another_connection_that_writes_in_between_is_noticed(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        session, entries = await grown(store, "one")
        async with open_store(store.file) as elsewhere:
            for number in range(20):
                writer = (elsewhere, store)[number % 2]
                entries += await writer.append(
                    session.id, [user(f"{number}")], parent=entries[-1].id
                )
                with pytest.raises(HeadMoved):
                    await (store, elsewhere)[number % 2].append(
                        session.id, [user("late")], parent=entries[-2].id
                    )
        assert await store.path(session.id) == entries

    play(story)


def test_one_bad_append_does_not_spoil_those_that_share_its_commit(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        taken = Entry("a" * 32, None, 0, Note(text="first"))
        sessions = [await store.create() for _ in range(3)]
        await store.append(sessions[0].id, [taken], parent=None)
        good, bad = await asyncio.gather(
            store.append(sessions[1].id, [user("fine")], parent=None),
            store.append(sessions[2].id, [user("lost?"), taken], parent=None),
            return_exceptions=True,
        )
        assert isinstance(bad, AlreadyExists)
        assert await store.path(sessions[1].id) == good
        assert await store.path(sessions[2].id) == ()

    play(story)


def test_a_cancelled_append_leaves_the_session_usable(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        session = await store.create()
        task = asyncio.create_task(store.append(session.id, [user("never mind")], parent=None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        head = (await store.session(session.id)).head
        await store.append(session.id, [user("go on")], parent=head)
        assert texts(await store.path(session.id))[-1] == "go on"

    play(story)


def test_windows_are_parts_of_the_path(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
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


def test_a_fork_shares_the_past_and_leaves_the_original_alone(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
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
    async def story(store: SqliteStore) -> None:
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


def test_a_branch_grows_beside_the_path_and_the_head_stays(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
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


def test_a_rewind_to_an_unknown_place_is_an_error_and_never_clears(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        session, entries = await grown(store, "one", "two")
        _, foreign = await grown(store, "other")
        for target in ("f" * 32, "", "nonsense", foreign[0].id):
            with pytest.raises(UnknownEntry):
                await store.rewind(session.id, target)
        with pytest.raises(HeadMoved):
            await store.rewind(session.id, entries[0].id, head=entries[0].id)
        assert await store.path(session.id) == entries

    play(story)


def test_titles_come_from_the_first_prompt_until_somebody_names_the_session(
    play: Play[None],
) -> None:
    async def story(store: SqliteStore) -> None:
        session = await store.create()
        await store.append(
            session.id, [model("hello"), user("  fix\n the \x1b[31m bug ")], parent=None
        )
        assert (await store.session(session.id)).title == "fix the [31m bug"
        named = await store.rename(session.id, "the bug 🐞")
        assert named.title == "the bug 🐞"
        path = await store.path(session.id)
        assert path[-1].body == Title(title="the bug 🐞")
        await store.append(session.id, [user("another prompt")], parent=named.head)
        assert (await store.session(session.id)).title == "the bug 🐞"
        with pytest.raises(BadInput):
            await store.rename(session.id, " \n ")

    play(story)


def test_the_trash_hides_and_gives_back(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
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


def test_the_latest_session_is_the_last_used(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        old, entries = await grown(store, "old")
        new, _ = await grown(store, "new")
        await asyncio.sleep(0.005)
        await store.append(old.id, [user("again")], parent=entries[-1].id)
        assert [s.id for s in await store.sessions()] == [old.id, new.id]

    play(story)


def test_ids_may_be_given_by_any_unambiguous_beginning(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
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


def test_nothing_is_made_for_a_session_that_does_not_exist(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        for missing in ("0" * 32, "short", ""):
            with pytest.raises(UnknownSession):
                await store.append(missing, [user("hi")], parent=None)
            with pytest.raises(UnknownSession):
                await store.path(missing)
        with pytest.raises(UnknownBlob):
            await store.blob("00")
        assert await store.sessions() == ()

    play(story)


def test_ids_that_are_taken_or_malformed_are_refused(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        session, entries = await grown(store, "one")
        with pytest.raises(AlreadyExists):
            await store.append(session.id, [entries[0]], parent=entries[0].id)
        with pytest.raises(AlreadyExists):
            await store.create(id=session.id)
        twin = Entry("b" * 32, None, 0, Note(text="twin"))
        with pytest.raises(AlreadyExists):
            await store.append(session.id, [twin, twin], parent=entries[0].id)
        for wrong in (
            Entry("x", None, 0, Note(text="")),
            Entry("c" * 32, None, 2**60, Note(text="")),
        ):
            with pytest.raises(BadInput):
                await store.append(session.id, [wrong], parent=entries[0].id)
        assert await store.path(session.id) == entries

    play(story)


def test_the_same_content_is_kept_once(play: Play[None]) -> None:
    async def story(store: SqliteStore) -> None:
        assert await store.put(b"\x00\xff" * 1000) == await store.put(b"\x00\xff" * 1000)
        digest = await store.put(b"")
        assert await store.blob(digest) == b""
        long = "the same long tool output\n" * 1000
        session, _ = await grown(store, *[long] * 20)
        assert texts(await store.path(session.id)) == [long] * 20
        assert store.file.stat().st_size < 10 * len(long)

    play(story)


def test_a_finished_draft_is_one_entry(play: Play[None]) -> None:
    async def write(store: SqliteStore) -> None:
        session, entries = await grown(store, "question")
        draft = await store.draft(session.id, model("The ans"), parent=entries[0].id)
        await store.draft(session.id, model("The answer"), parent=entries[0].id, id=draft)
        whole = Entry(draft, None, 5, model("The answer is 42"))
        await store.append(session.id, [whole], parent=entries[0].id)

    async def reread(store: SqliteStore) -> None:
        (session,) = await store.sessions()
        assert texts(await store.path(session.id)) == ["question", "The answer is 42"]

    play(write)
    play(reread)
