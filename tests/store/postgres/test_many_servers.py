"""Several servers on one database: they start at once, race, hear of each other, and die."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest

from recollect.entries import Message
from recollect.errors import AlreadyExists, HeadMoved, NewerStore
from recollect.store.contract import Store
from recollect.store.postgres import tables
from recollect.store.postgres.postgres_store import PostgresStore, open_postgres
from recollect.testing import model, user
from tests.postgres_server import PostgresServer
from tests.store.stories import grown, texts


@asynccontextmanager
async def opened(url: str, count: int) -> AsyncIterator[list[PostgresStore]]:
    async with AsyncExitStack() as stack:
        opening = (stack.enter_async_context(open_postgres(url)) for _ in range(count))
        yield await asyncio.gather(*opening)


def test_ten_servers_create_the_tables_at_once(postgres: PostgresServer) -> None:
    async def story() -> None:
        for _ in range(3):
            url = postgres.new_url()
            async with opened(url, 10) as stores:
                made = await asyncio.gather(*(store.create() for store in stores))
                listed = {session.id for session in await stores[0].sessions()}
                assert listed == {session.id for session in made}

    asyncio.run(story())


def test_a_database_of_a_later_version_is_refused_and_not_changed(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_url()

    async def story() -> None:
        async with open_postgres(url):
            pass
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("UPDATE recollect SET format = %s", (tables.FORMAT + 1,))
        with pytest.raises(NewerStore):
            async with open_postgres(url):
                pass
        with psycopg.connect(url) as db:
            assert db.execute("SELECT format FROM recollect").fetchall() == [(tables.FORMAT + 1,)]

    asyncio.run(story())


async def _race(store: Store, session: str, name: str, count: int) -> list[str]:
    """Append so many texts after whatever is the head; returns the acknowledged ones."""
    said: list[str] = []
    head = (await store.session(session)).head
    while len(said) < count:
        text = f"{name} {len(said)}"
        try:
            head = (await store.append(session, [user(text)], parent=head))[-1].id
            said.append(text)
        except HeadMoved as moved:
            head = moved.actual
    return said


def race_for_one_session(url: str, servers: int, tasks: int, count: int) -> None:
    async def story() -> None:
        async with opened(url, servers) as stores:
            session = (await stores[0].create()).id
            racing = (
                _race(store, session, f"{number}.{task}", count)
                for number, store in enumerate(stores)
                for task in range(tasks)
            )
            said = [text for own in await asyncio.gather(*racing) for text in own]
            stored = texts(await stores[-1].path(session))
            assert sorted(stored) == sorted(said)
            assert await stores[0].check() == ()

    asyncio.run(story())


def test_of_servers_thatrace_for_one_session_each_append_is_stored_once(
    postgres: PostgresServer,
) -> None:
    race_for_one_session(postgres.new_url(), servers=3, tasks=3, count=10)


@pytest.mark.long
def test_of_many_servers_thatrace_for_one_session_each_append_is_stored_once(
    postgres: PostgresServer,
) -> None:
    race_for_one_session(postgres.new_url(), servers=5, tasks=10, count=40)


def test_forks_rewinds_and_branches_race_for_segments(postgres: PostgresServer) -> None:
    async def story() -> None:
        async with opened(postgres.new_url(), 3) as stores:
            session, entries = await grown(stores[0], "one", "two")

            async def change(store: Store, number: int) -> None:
                await store.fork(session.id, at=entries[0].id)
                await store.branch(session.id, [user(f"{number}")], at=entries[0].id)
                await store.rewind(session.id, entries[number % 2].id)

            await asyncio.gather(*(change(store, n) for store in stores for n in range(4)))
            assert len(await stores[0].sessions()) == 1 + 12
            assert len(await stores[1].tree(session.id)) == 2 + 12
            assert await stores[2].check() == ()

    asyncio.run(story())


def test_a_watcher_on_another_server_hears_of_an_append(postgres: PostgresServer) -> None:
    async def story() -> None:
        async with opened(postgres.new_url(), 2) as (here, there):
            session, entries = await grown(here, "one")
            waiting = asyncio.create_task(there.wait_for_append(session.id, entries[0].id, 60))
            assert not await there.wait_for_append(session.id, entries[0].id, 0.01)
            await here.append(session.id, [user("two")], parent=entries[0].id)
            assert await waiting
            assert await there.wait_for_append(session.id, None, 0)

    asyncio.run(story())


WRITER = """
import asyncio, sys
from recollect.store.postgres.postgres_store import open_postgres
from recollect.testing import model
async def main(url, session):
    async with open_postgres(url) as store:
        print(await store.draft(session, model("so far"), parent=None), flush=True)
        await asyncio.sleep(600)
asyncio.run(main(*sys.argv[1:]))
"""


async def _killed_writer(url: str, session: str) -> str:
    """The draft of a server that was killed while it streamed a reply."""
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, url, session, stdout=asyncio.subprocess.PIPE
    )
    assert writer.stdout is not None
    draft = (await writer.stdout.readline()).decode().strip()
    writer.kill()
    await writer.wait()
    return draft


def _pass_time(url: str, seconds: int) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE writers SET seen = seen - make_interval(secs => %s)", (seconds,))


def test_the_reply_of_a_killed_server_is_saved_once_by_whoever_notices(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_url()

    async def story() -> None:
        async with open_postgres(url) as store:
            session = await store.create()
        draft = await _killed_writer(url, session.id)
        async with open_postgres(url) as store:  # it may still live
            assert (store.warnings, await store.path(session.id)) == ([], ())
        _pass_time(url, 31)
        async with opened(url, 10) as stores:
            assert sum(len(store.warnings) for store in stores) == 1
            (reply,) = await stores[0].path(session.id)
            assert isinstance(reply.body, Message)
            assert (reply.id, reply.body.finish) == (draft, "interrupted")
            with pytest.raises(AlreadyExists):
                await stores[1].draft(session.id, model("so far, so"), parent=None, id=draft)
            await stores[0].append(session.id, [user("go on")], parent=reply.id)
            assert await stores[3].check() == ()

    asyncio.run(story())


def test_a_reply_that_was_cut_is_a_branch_if_the_session_has_moved_on(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_url()

    async def story() -> None:
        async with open_postgres(url) as store:
            session = await store.create()
            draft = await _killed_writer(url, session.id)
            (on,) = await store.append(session.id, [user("never mind")], parent=None)
        _pass_time(url, 31)
        async with open_postgres(url) as store:
            assert await store.path(session.id) == (on,)
            assert {entry.id for entry in await store.tree(session.id)} == {on.id, draft}

    asyncio.run(story())


def test_a_server_that_streams_keeps_its_draft_and_one_that_closes_gives_it_up(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_url()

    async def story() -> None:
        async with open_postgres(url) as streaming:
            session = await streaming.create()
            await streaming.draft(session.id, model("so far"), parent=None)
            async with open_postgres(url) as other:
                assert other.warnings == []
        async with open_postgres(url) as later:
            assert len(later.warnings) == 1

    asyncio.run(story())
