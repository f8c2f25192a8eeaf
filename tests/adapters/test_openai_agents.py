"""recollect as a session of openai-agents, with items as that package hands them over."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from recollect.adapters.openai_agents import RecollectSession
from recollect.entries import Message, Text, ToolCall, ToolResult
from recollect.errors import BadInput
from recollect.session_store import kept_store
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.transcripts.json_patch import json_equal
from tests.adapters.items import EVERY_KIND, PIXEL, called, output, reasoned, replied, run, said
from tests.cli.runner import Cli


def test_every_item_comes_back_exactly_as_it_was_given(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        together = RecollectSession("together", store=store)
        await together.add_items(EVERY_KIND)
        alone = RecollectSession("one by one", store=store)
        for item in EVERY_KIND:
            await alone.add_items([item])
        for session in (together, alone, RecollectSession("together", store=store)):
            found = await session.get_items()
            for given, returned in zip(EVERY_KIND, found, strict=True):
                assert json_equal(given, returned), (given, returned)
            assert await session.get_items(limit=7) == EVERY_KIND[-7:]
            assert await session.get_items(limit=0) == []
            assert len(await session.get_items(limit=1000)) == len(EVERY_KIND)

    run(tmp_path, work)


def test_what_is_given_may_be_changed_afterwards(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        item = said("first")
        await session.add_items([item])
        item["content"] = "changed"
        found = await session.get_items()
        found[0]["content"] = "changed too"
        assert await session.get_items() == [said("first")]

    run(tmp_path, work)


def test_a_turn_becomes_the_messages_of_a_session_and_each_text_is_stored_once(
    tmp_path: Path,
) -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    turn = [
        reasoned("I look."),
        called("c1"),
        called("c2", "grep", '{"pattern": "x"}'),
        output("c1", "contents of a.py"),
        output("c2", [image]),
    ]

    async def work(store: SqliteStore) -> tuple[Message, ...]:
        session = RecollectSession("u", store=store)
        await session.add_items([said("Look at a.py")])
        await session.add_items(turn[:3])
        await session.add_items(turn[3:])
        await session.add_items([replied("It says contents.")])
        return (await session.open()).view().messages

    prompt, calls, results, answer = run(tmp_path, work)
    assert [m.role for m in (prompt, calls, results, answer)] == ["user", "model", "user", "model"]
    assert prompt.parts == (Text(text="Look at a.py"),)
    assert [part.name for part in calls.parts if isinstance(part, ToolCall)] == [
        "read_file",
        "grep",
    ]
    first, second = results.parts
    assert isinstance(first, ToolResult)
    assert isinstance(second, ToolResult)
    assert (first.name, first.content) == ("read_file", (Text(text="contents of a.py"),))
    assert second.name == "grep"
    assert "contents" not in results.extra
    assert PIXEL not in results.extra
    assert "It says" not in answer.extra


def test_pop_takes_items_back_one_by_one_and_nothing_is_deleted(tmp_path: Path) -> None:
    items = [said("Look"), reasoned(), called("c1"), called("c2"), output("c1"), output("c2")]

    async def work(store: SqliteStore) -> None:
        session, other = (RecollectSession("u", store=store) for _ in range(2))
        await session.add_items(items)
        for count in range(len(items), 0, -1):
            assert await session.pop_item() == items[count - 1]
            assert await other.get_items(limit=100) == items[: count - 1]
        assert await session.pop_item() is None
        await session.add_items([said("again")])
        assert await other.get_items() == [said("again")]
        tree = await store.tree((await session.open()).id)
        assert {e.body.parts[0] for e in tree if isinstance(e.body, Message)} >= {
            Text(text="Look"),
            Text(text="again"),
        }

    run(tmp_path, work)


def test_clear_goes_back_to_the_start_and_the_history_can_still_be_shown(tmp_path: Path) -> None:
    cli = Cli(tmp_path)

    async def work(store: SqliteStore) -> str:
        session, other = (RecollectSession("user_123", store=store) for _ in range(2))
        await session.add_items([said("the old question"), replied("the old answer")])
        assert len(await other.get_items()) == 2
        await session.clear_session()
        assert await session.get_items() == await other.get_items() == []
        await other.add_items([said("the new question")])
        assert await session.get_items() == [said("the new question")]
        return (await session.open()).id

    id_ = cli.write(work)
    assert "the old answer" not in cli.ok("show", id_).out
    assert "the old answer" in cli.ok("show", id_, "--tree").out
    assert "user_123" in cli.ok("sessions", "--all").out


def test_the_commands_work_on_such_a_session(tmp_path: Path) -> None:
    cli = Cli(tmp_path)

    async def work(store: SqliteStore) -> str:
        session = RecollectSession("user_123", store=store)
        await session.add_items(EVERY_KIND)
        await session.add_items([called("c9"), output("c9", "the refill runs twice")])
        return (await session.open()).id

    id_ = cli.write(work)
    shown = cli.ok("show", id_).out
    assert "What is in a.py?" in shown
    assert "read_file" in shown
    assert "the refill runs twice" in shown
    assert id_ in cli.ok("search", "refill", "twice", "--all", "--json").out
    assert "read_file" in cli.ok("context", id_).out


def test_the_same_name_is_the_same_session_in_the_users_own_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path))
    session = RecollectSession("user_123")
    asyncio.run(session.add_items([said("one")]))
    asyncio.run(session.add_items([said("two")]))  # another event loop
    assert asyncio.run(RecollectSession("user_123").get_items()) == [said("one"), said("two")]
    assert asyncio.run(RecollectSession("user_124").get_items()) == []

    async def titles() -> list[str]:
        return [info.title for info in await (await kept_store()).sessions()]

    assert sorted(asyncio.run(titles())) == ["user_123", "user_124"]


def test_writers_at_the_same_time_lose_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)

    async def work(store: SqliteStore) -> None:
        async with open_store(tmp_path / "recollect.db") as second:
            writers = [RecollectSession("u", store=s) for s in (store, second, store, second)]

            async def write(number: int, writer: RecollectSession) -> None:
                for turn in range(15):
                    await writer.add_items([said(f"{number}.{turn}"), replied("yes")])

            writers[2] = writers[0]  # one object may be shared, too
            await asyncio.gather(*(write(n, writer) for n, writer in enumerate(writers)))
            found = await RecollectSession("u", store=store).get_items()
            assert found[1::2] == [replied("yes")] * 60
            texts = [item["content"] for item in found[::2]]
            for number in range(4):
                own = [text for text in texts if text.startswith(f"{number}.")]
                assert own == [f"{number}.{turn}" for turn in range(15)]

    run(tmp_path, work)


def test_no_item_is_taken_back_twice(tmp_path: Path) -> None:
    items = [said(str(n)) for n in range(12)]

    async def work(store: SqliteStore) -> None:
        async with open_store(tmp_path / "recollect.db") as second:
            both = [RecollectSession("u", store=s) for s in (store, second)]
            await both[0].add_items(items)

            async def take(session: RecollectSession) -> list[Any]:
                return [await session.pop_item() for _ in range(6)]

            taken = await asyncio.gather(*map(take, both))
            assert sorted(int(i["content"]) for some in taken for i in some) == list(range(12))
            assert await both[0].get_items() == []

    run(tmp_path, work)


@pytest.mark.parametrize(
    ("items", "wrong"),
    [
        (["hello"], "item 0 is a str"),
        ([said("fine"), {}], "item 1 is empty"),
        ([{"role": "user", "content": {1, 2}}], "not JSON"),
        ([{"role": "user", "content": float("nan")}], "not JSON"),
    ],
)
def test_items_that_cannot_be_stored_are_refused_all_together(
    tmp_path: Path, items: list[Any], wrong: str
) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store)
        with pytest.raises(BadInput, match=wrong):
            await session.add_items(items)
        assert await session.get_items() == []

    run(tmp_path, work)


def test_a_session_without_a_name_is_refused() -> None:
    with pytest.raises(BadInput, match="empty"):
        RecollectSession("")


def test_session_settings_limit_what_is_returned(tmp_path: Path) -> None:
    async def work(store: SqliteStore) -> None:
        session = RecollectSession("u", store=store, session_settings={"limit": 2})
        await session.add_items([said("1"), said("2"), said("3")])
        assert await session.get_items() == [said("2"), said("3")]
        assert await session.get_items(1) == [said("3")]

    run(tmp_path, work)
