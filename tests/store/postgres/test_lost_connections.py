"""A lost connection or database loses nothing that was acknowledged, and stores nothing twice."""

from __future__ import annotations

import asyncio

import pytest

from recollect.entries import Entry
from recollect.errors import CannotOpen, CannotReach
from recollect.store.contract import SessionInfo, Store
from recollect.store.ids import new_id, now
from recollect.store.postgres.postgres_store import open_postgres
from recollect.testing import model, user
from tests.postgres_server import PostgresServer, running_postgres
from tests.store.postgres.cutting_proxy import CuttingProxy, Moment, cutting_proxy
from tests.store.stories import grown, texts

MOMENTS: tuple[Moment, ...] = ("before it arrives", "after it was answered")


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_append_whose_connection_is_cut_is_stored_once(
    postgres: PostgresServer, moment: Moment
) -> None:
    async def story() -> None:
        async with cutting_proxy(postgres.port) as proxy:
            url = postgres.url(schema=postgres.new_schema(), host="127.0.0.1", port=proxy.port)
            async with open_postgres(url) as store:
                session, head = await store.create(), None
                for number in range(12):
                    proxy.cut(b"the text %d of" % number, moment)
                    body = user(f"the text {number} of many")
                    (entry,) = await store.append(session.id, [body], parent=head)
                    head = entry.id
                assert proxy.cuts == 12
                path = texts(await store.path(session.id))
                assert path == [f"the text {number} of many" for number in range(12)]
                assert await store.check() == ()

    asyncio.run(story())


@pytest.mark.parametrize("moment", MOMENTS)
def test_appends_that_share_a_transaction_are_stored_once_if_it_is_cut(
    postgres: PostgresServer, moment: Moment
) -> None:
    async def story() -> None:
        async with cutting_proxy(postgres.port) as proxy:
            url = postgres.url(schema=postgres.new_schema(), host="127.0.0.1", port=proxy.port)
            async with open_postgres(url) as store:
                sessions = [await store.create() for _ in range(20)]
                heads: dict[str, str | None] = dict.fromkeys([s.id for s in sessions])
                for number in range(3):
                    proxy.cut(b"COMMIT", moment)
                    await asyncio.gather(*(_append_to(store, heads, each) for each in sessions))
                    assert proxy.cuts == number + 1
                for session in sessions:
                    assert len(await store.path(session.id)) == 3

    asyncio.run(story())


async def _append_to(store: Store, heads: dict[str, str | None], session: SessionInfo) -> None:
    (entry,) = await store.append(session.id, [user("x")], parent=heads[session.id])
    heads[session.id] = entry.id


@pytest.mark.parametrize("moment", MOMENTS)
def test_changes_of_sessions_happen_once_if_their_commit_is_cut(
    postgres: PostgresServer, moment: Moment
) -> None:
    async def story() -> None:
        async with cutting_proxy(postgres.port) as proxy:
            url = postgres.url(schema=postgres.new_schema(), host="127.0.0.1", port=proxy.port)
            async with open_postgres(url) as store:
                await _change_everything(store, proxy, moment)

    asyncio.run(story())


async def _change_everything(store: Store, proxy: CuttingProxy, moment: Moment) -> None:
    given = new_id()
    proxy.cut(b"COMMIT", moment)
    assert (await store.create(id=given)).id == given
    session, entries = await grown(store, "one", "two")
    proxy.cut(b"COMMIT", moment)
    fork = await store.fork(session.id, at=entries[0].id)
    assert fork.head == entries[0].id
    proxy.cut(b"COMMIT", moment)
    rewound = await store.rewind(session.id, entries[0].id, head=entries[1].id)
    assert rewound.head == entries[0].id
    proxy.cut(b"COMMIT", moment)
    (aside,) = await store.branch(session.id, [user("aside")], at=entries[1].id)
    assert [entry.id for entry in await store.tree(session.id)] == [
        *(entry.id for entry in entries),
        aside.id,
    ]
    draft = await store.draft(session.id, model("so f"), parent=entries[0].id)
    proxy.cut(b"COMMIT", moment)
    whole = Entry(draft, None, now(), model("so far"))
    await store.append(session.id, [whole], parent=entries[0].id)
    assert texts(await store.path(session.id)) == ["one", "so far"]
    assert proxy.cuts == 5
    assert len(await store.sessions()) == 3


def _append_through_stops(stops: int, writers: int) -> None:
    """Acknowledged entries are there once, in order, however often the database is stopped hard."""

    async def story() -> None:
        with running_postgres() as server:
            url = server.new_url()
            async with open_postgres(url) as store:
                done = asyncio.Event()
                tasks = [asyncio.create_task(write_until(store, done)) for _ in range(writers)]
                for _ in range(stops):
                    await asyncio.sleep(0.5)
                    await asyncio.to_thread(server.stop, "immediate")
                    await asyncio.to_thread(server.start)
                await asyncio.sleep(0.5)
                done.set()
                for session, acknowledged in await asyncio.gather(*tasks):
                    assert len(acknowledged) > stops
                    assert texts(await store.path(session)) == acknowledged
                assert await store.check() == ()

    asyncio.run(story())


async def write_until(store: Store, done: asyncio.Event) -> tuple[str, list[str]]:
    session, head, said = (await store.create()).id, None, list[str]()
    while not done.is_set():
        text = f"text {len(said)}"
        head = (await store.append(session, [user(text)], parent=head))[-1].id
        said.append(text)
    return session, said


def test_a_database_that_is_stopped_hard_loses_nothing_that_was_acknowledged() -> None:
    _append_through_stops(stops=2, writers=10)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_database_that_is_stopped_hard_thirty_times() -> None:
    _append_through_stops(stops=30, writers=40)


def test_errors_say_what_is_wrong_and_no_password() -> None:
    async def fail(url: str) -> str:
        with pytest.raises(CannotOpen) as raised:
            async with open_postgres(url):
                pass
        return str(raised.value)

    async def story() -> None:
        for url in (
            "postgresql://me:geheim@127.0.0.1:1/db",
            "postgresql://me:geheim@/db?host=/nowhere",
            "postgresql://me:geheim@127.0.0.1:1/db?nonsense=1",
            "postgresql://me:geheim@[broken",
        ):
            assert "geheim" not in await fail(url)
        assert "127.0.0.1:1/db" in await fail("postgresql://me:geheim@127.0.0.1:1/db")

    asyncio.run(story())


def test_a_lost_database_is_named_and_the_store_goes_on_when_it_is_back() -> None:
    async def story() -> None:
        with running_postgres() as server:
            async with open_postgres(server.new_url(), patience=1.0) as store:
                session, entries = await grown(store, "one")
                server.stop("immediate")
                with pytest.raises(CannotReach, match="cannot reach postgresql://") as raised:
                    await store.append(session.id, [user("two")], parent=entries[0].id)
                assert "Start the database" in str(raised.value)
                with pytest.raises(CannotReach):
                    await store.path(session.id)
                server.start()
                while True:  # the pool tries again in growing intervals
                    try:
                        assert await store.path(session.id) == entries
                        break
                    except CannotReach:
                        continue
                await store.append(session.id, [user("two")], parent=entries[0].id)

    asyncio.run(story())
