"""`Session`, as a program uses it, over a real SQLite file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

import recollect
from recollect.testing import call

T = TypeVar("T")
READ = call("read_file", id="r1", path="limiter.py")


def in_store(folder: Path, story: Callable[[recollect.SessionStore], Awaitable[T]]) -> T:
    async def play() -> T:
        async with recollect.open(folder / "s.db") as store:
            return await story(store)

    return asyncio.run(play())


def texts(session: recollect.Session) -> list[str]:
    parts = [part for message in session.view().messages for part in message.parts]
    return [part.text for part in parts if isinstance(part, recollect.Text)]


async def long_session(store: recollect.SessionStore, turns: int = 30) -> recollect.Session:
    session = await store.create(title="long")
    await session.append(recollect.system("Be brief."))
    for number in range(turns):
        words = f"question {number} " + "about the limiter and its tokens " * 20
        reply = recollect.assistant(f"answer {number} " + "with reasons " * 40)
        await session.append(recollect.user(words), reply)
    return session


def test_two_handles_lose_nothing_and_the_later_writer_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(store: recollect.SessionStore) -> None:
        one = await store.create(title="shared")
        await one.append(recollect.user("first"))
        two = await store.session(one.id)
        await one.append(recollect.assistant("of one"))
        with caplog.at_level(logging.WARNING, "recollect"):
            await two.append(recollect.user("of two"))
        assert texts(two) == ["first", "of one", "of two"]
        assert "was continued elsewhere meanwhile" in caplog.text
        assert texts(one) == ["first", "of one"]
        await one.reload()
        assert texts(one) == texts(two)

    in_store(tmp_path, story)


def test_a_conflict_raises_or_forks_where_that_is_asked_for(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        one = await store.create()
        await one.append(recollect.user("first"))
        two, three = await store.session(one.id), await store.session(one.id)
        await one.append(recollect.assistant("of one"))
        with pytest.raises(recollect.errors.HeadMoved):
            await two.append(recollect.user("of two"), on_conflict="raise")
        assert texts(two) == ["first"]
        await three.append(recollect.user("of three"), on_conflict="fork")
        assert three.id != one.id
        assert texts(three) == ["first", "of three"]

    in_store(tmp_path, story)


def test_an_edit_beside_another_writer_is_planned_again(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        one = await store.create()
        entries = await one.append(recollect.user("first"), recollect.assistant("second"))
        two = await store.session(one.id)
        await one.append(recollect.user("third"))
        await two.pin(entries[0])
        assert texts(two) == ["first", "second", "third"]
        assert [item.pinned for item in two.view().items] == [True, False, False]

    in_store(tmp_path, story)


def test_what_is_dropped_is_explained_and_comes_back(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create(title="limiter")
        _, _, result, _ = await session.append(
            recollect.user("look"),
            recollect.assistant("I look.", READ),
            recollect.tool_result(READ, "code " * 300),
            recollect.assistant("It runs twice."),
        )
        before = session.view().tokens
        await session.drop(result)
        explained = await session.explain()
        (gone,) = explained.left_out
        assert (gone.rule, gone.restore, gone.reason) == ("drop", result.id, "left out on request")
        assert explained.tokens == session.view().tokens < before
        assert explained.tokens + gone.tokens == before
        assert sum(item.tokens for item in explained.items) == explained.tokens
        shown = str(explained)
        assert shown.startswith("limiter: the model sees ")
        assert result.id in shown
        assert "left out on request, since 20" in shown
        assert (await session.recall(result)).startswith("code code")
        await session.restore(gone.restore)
        assert session.view().tokens == before
        assert str(await session.explain()).endswith("nothing is left out")

    in_store(tmp_path, story)


def test_an_edit_without_effect_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        (entry,) = await session.append(recollect.user("hi"))
        await session.pin(entry.id)
        for edit, why in (
            (session.pin, "already pinned"),
            (session.drop, "it is pinned; restoring "),
            (session.restore, "nothing is left out of it"),
        ):
            with pytest.raises(recollect.errors.CannotEdit, match=why):
                await edit(entry)
        with pytest.raises(recollect.errors.UnknownEntry):
            await session.pin("feed")

    in_store(tmp_path, story)


def test_a_compaction_is_previewed_applied_explained_and_undone(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await long_session(store)
        before, entries = session.view().tokens, session.view().n
        preview = await session.compact(preview=True, budget=2_000)
        assert preview.succeeded
        assert preview.entry is None
        assert session.view().n == entries
        done = await session.compact(budget=2_000, instructions="keep the tokens")
        assert done.entry is not None
        assert session.view().tokens == done.after <= 2_000 < before == done.before
        assert str(done).startswith("compacted ")
        explained = await session.explain()
        assert [gone.rule for gone in explained.left_out] == ["compaction"]
        assert "messages before it" in str(explained)
        recalled = await session.recall(done.entry)
        assert "user: question 0 about" in recalled
        assert "system:" not in recalled

        again = await store.session(session.id)
        first = next(e for e in await store.store.path(session.id) if "question 0" in str(e.body))
        await again.pin(first)  # hidden by the snapshot, and not even loaded
        assert "question 0" in "\n".join(texts(again))
        await again.undo_compaction()
        assert again.view().tokens == before
        with pytest.raises(recollect.errors.CannotEdit, match="none is in force"):
            await again.undo_compaction()
        asked = next(e for e in again.view().entries if "question 9" in str(e.body))
        part = await again.compact(until=asked.id[:20])
        assert part.compaction.first_kept == asked.id
        assert again.view().tokens == part.after < part.before

    in_store(tmp_path, story)


def test_a_model_may_write_the_snapshot(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await long_session(store)
        goal = "<state_snapshot><overall_goal>Fix the limiter</overall_goal></state_snapshot>"
        model = recollect.testing.ScriptedModel([goal])
        done = await session.compact(budget=2_000, model=model)
        assert model.left == 0
        assert "Fix the limiter" in done.snapshot

    in_store(tmp_path, story)


def test_a_scratch_session_is_edited_and_explained_and_stores_nothing(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await long_session(store)
        scratch, entries = session.scratch(), session.view().n
        (asked,) = await scratch.append(recollect.user("And if I asked this?"))
        assert (await scratch.compact(budget=2_000)).succeeded
        await scratch.pin(asked)
        assert [gone.rule for gone in (await scratch.explain()).left_out] == ["compaction"]
        assert scratch.messages()[-1]["content"] == "And if I asked this?"
        for refused in (scratch.fork(), scratch.rewind(None)):
            with pytest.raises(recollect.errors.CannotEdit, match="stores nothing"):
                await refused
        await session.reload()
        assert session.view().n == entries

    in_store(tmp_path, story)


def test_there_may_be_nothing_to_compact(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        done = await session.compact()
        assert (done.succeeded, done.entry, session.view().n) == (False, None, 0)
        assert str(done).startswith("not compacted: ")

    in_store(tmp_path, story)


def test_a_fork_shares_the_beginning_and_a_rewind_deletes_nothing(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create(title="one")
        first, *_ = await session.append(recollect.user("a"), recollect.assistant("b"))
        fork = await session.fork(first, title="other way")
        await fork.append(recollect.assistant("c"))
        assert texts(fork) == ["a", "c"]
        whole = await session.fork()
        await whole.append(recollect.user("d"))
        assert texts(whole) == ["a", "b", "d"]
        await session.rewind(first.id)
        assert texts(session) == ["a"]
        await session.append(recollect.assistant("e"))
        assert texts(session) == ["a", "e"]
        assert len(await store.store.tree(session.id)) == 3
        await session.rewind(None)
        assert texts(session) == []
        assert (await fork.info()).title == "other way"

    in_store(tmp_path, story)


def test_search_usage_and_turns(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> None:
        session = await store.create()
        reply = recollect.Message(
            role="model",
            parts=(recollect.Text(text="Two timers start refillTokens."),),
            usage=recollect.Usage(input=10, output=5, total=15),
        )
        _, answer = await session.append(recollect.user("Why twice?"), reply)
        await session.append(recollect.user("And now?"), reply)
        assert await session.usage() == recollect.Usage(input=20, output=10, total=30)
        await session.rewind(answer)
        assert (await session.usage()).total == 30  # what was spent, also on what was left
        hits = await (await session.fork()).search("timers refill*")
        assert answer.id in [hit.entry.id for hit in hits]
        await session.append(recollect.user("Once more"))
        assert len(session.last_turns(1)) == 1
        assert len(session.last_turns(2)) == 3

    in_store(tmp_path, story)


def test_a_closed_store_says_so_in_one_sentence(tmp_path: Path) -> None:
    async def story(store: recollect.SessionStore) -> tuple[recollect.Session, object]:
        return await store.create(), store

    session, _ = in_store(tmp_path, story)
    for work in (session.append(recollect.user("hi")), session.info(), session.usage()):
        with pytest.raises(recollect.errors.StoreClosed, match=r"s\.db is closed; open it again"):
            asyncio.run(work)
    with pytest.raises(recollect.errors.StoreClosed):
        recollect.Agent(recollect.testing.ScriptedModel(["x"])).run_sync("go on", session)
