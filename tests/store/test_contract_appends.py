"""Every store's promises about appends, drafts and contents."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect import Entry
from recollect.engine import open_store
from recollect.entries import Body, Note
from recollect.errors import AlreadyExists, BadInput, HeadMoved, UnknownBlob, UnknownSession
from recollect.store.contract import SearchQuery, Store
from recollect.testing import call, model, result, user
from tests.both_stores import NewStore, OpenStore
from tests.store.stories import Play, grown, texts
from tests.strategies import bodies


def test_appended_entries_are_read_back_after_reopening(play: Play[object]) -> None:
    read = call("read_file", path="a.py")

    async def write(store: Store) -> tuple[Entry, ...]:
        session = await store.create(title="a title")
        messages = [user("look at a.py"), model("I read it", read), result(read, "x = 1")]
        return await store.append(session.id, messages, parent=None)

    written = play(write)

    async def reread(store: Store) -> tuple[Entry, ...]:
        (session,) = await store.sessions()
        assert (session.title, session.entries) == ("a title", 3)
        return await store.path(session.id)

    assert play(reread) == written


@given(items=st.lists(bodies, min_size=1, max_size=6))
def test_every_kind_of_entry_is_stored_exactly(items: list[Body], new_store: NewStore) -> None:
    async def story() -> None:
        reopen = new_store()
        async with reopen() as store:
            session = await store.create()
            await store.append(session.id, items, parent=None)
        async with reopen() as store:
            assert [entry.body for entry in await store.path(session.id)] == items

    asyncio.run(story())


def test_a_stale_writer_gets_the_actual_head_and_writes_nothing(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "one", "two")
        with pytest.raises(HeadMoved) as caught:
            await store.append(session.id, [user("late")], parent=entries[0].id)
        assert caught.value.actual == entries[1].id
        with pytest.raises(HeadMoved):
            await store.append(session.id, [user("late")], parent=None)
        assert await store.path(session.id) == entries

    play(story)


def test_of_many_tasks_that_race_for_one_head_one_wins(play: Play[None]) -> None:
    async def story(store: Store) -> None:
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
    async def story(store: Store) -> None:
        busy, other = await store.create(), await store.create()

        async def write_on() -> None:
            head = None
            while not await_other.done():
                head = (await store.append(busy.id, [user("more")], parent=head))[-1].id

        await_other = asyncio.create_task(store.append(other.id, [user("me too")], parent=None))
        await asyncio.wait_for(write_on(), timeout=60)
        assert texts(await store.path(other.id)) == ["me too"]

    play(story)


def test_writes_of_another_connection_are_noticed(play: Play[None], reopen: OpenStore) -> None:
    async def story(store: Store) -> None:
        session, entries = await grown(store, "one")
        async with reopen() as elsewhere:
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


def test_one_bad_append_does_not_fail_others_in_its_commit(play: Play[None]) -> None:
    async def story(store: Store) -> None:
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
    async def story(store: Store) -> None:
        session = await store.create()
        task = asyncio.create_task(store.append(session.id, [user("never mind")], parent=None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        head = (await store.session(session.id)).head
        await store.append(session.id, [user("go on")], parent=head)
        assert texts(await store.path(session.id))[-1] == "go on"

    play(story)


def test_nothing_is_created_for_a_session_that_does_not_exist(play: Play[None]) -> None:
    async def story(store: Store) -> None:
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
    async def story(store: Store) -> None:
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


def test_a_refused_entry_leaves_no_words_in_the_index(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        session, (first,) = await grown(store, "one")
        refused = Entry(first.id, None, 0, user("refused"))
        with pytest.raises(AlreadyExists):
            await store.append(session.id, [refused], parent=first.id)
        # long, so that the index reads it back from the log
        (kept,) = await store.append(session.id, [user("kept " * 1_000)], parent=first.id)
        found = {
            word: [hit.entry for hit in await store.search(SearchQuery(word))]
            for word in ("kept", "refused")
        }
        assert found == {"kept": [kept], "refused": []}

    play(story)


def test_the_same_content_is_stored_once(play: Play[None]) -> None:
    async def story(store: Store) -> None:
        assert await store.put(b"\x00\xff" * 1000) == await store.put(b"\x00\xff" * 1000)
        digest = await store.put(b"")
        assert await store.blob(digest) == b""
        long = "the same long tool output\n" * 1000
        session, _ = await grown(store, *[long] * 20)
        assert texts(await store.path(session.id)) == [long] * 20

    play(story)


def test_the_same_text_takes_up_room_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_store(tmp_path / "store.db") as store:
            long = "the same long tool output\n" * 1000
            await grown(store, *[long] * 20)
            assert (tmp_path / "store.db").stat().st_size < 10 * len(long)

    asyncio.run(story())


def test_a_finished_draft_is_one_entry(play: Play[None]) -> None:
    async def write(store: Store) -> None:
        session, entries = await grown(store, "question")
        draft = await store.draft(session.id, model("The ans"), parent=entries[0].id)
        await store.draft(session.id, model("The answer"), parent=entries[0].id, id=draft)
        whole = Entry(draft, None, 5, model("The answer is 42"))
        await store.append(session.id, [whole], parent=entries[0].id)

    async def reread(store: Store) -> None:
        (session,) = await store.sessions()
        assert texts(await store.path(session.id)) == ["question", "The answer is 42"]

    play(write)
    play(reread)
