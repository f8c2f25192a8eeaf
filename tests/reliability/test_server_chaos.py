"""Two servers on one PostgreSQL, of which one is killed while clients chat; a database that is
stopped hard, or fails over: every acknowledged turn is there once."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeAlias

import psycopg
import pytest

from recollect.store.postgres.postgres_store import open_postgres
from tests.cli.provider import provider
from tests.cli.runner import Cli
from tests.cli.served import RunningServe, served
from tests.postgres_server import PostgresServer, running_postgres
from tests.reliability.chat_clients import (
    TOKEN,
    ChatClient,
    check_store,
    echo,
    wait_for_turns,
)
from tests.reliability.children import note_figures
from tests.store.postgres.test_failover import wait_for_replica


class Size(NamedTuple):
    """How many clients there are on both servers together, and how many turns each has."""

    clients: int
    turns: int


SMALL, FULL = Size(10, 4), Size(100, 20)
Disaster: TypeAlias = Callable[[list[ChatClient]], Awaitable[None]]


@contextmanager
def two_servers(cli: Cli, url: str) -> Iterator[tuple[RunningServe, RunningServe]]:
    arguments = ("--store", url, "--token", TOKEN)
    with (
        provider(cli, "openai", [echo], repeat=True),
        served(cli, *arguments) as one,
        served(cli, *arguments) as other,
    ):
        yield one, other


async def chat_through(
    name: str, servers: tuple[RunningServe, RunningServe], size: Size, disaster: Disaster
) -> list[ChatClient]:
    """All clients to their last turn, with the disaster half-way."""
    clients = [ChatClient(number, servers) for number in range(size.clients)]
    began = time.monotonic()
    async with asyncio.timeout(60 + size.clients * size.turns), asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.chat(size.turns))
        await wait_for_turns(clients, size.clients * size.turns // 2)
        await disaster(clients)
    note_figures(name, figures_of(clients, time.monotonic() - began))
    return clients


def figures_of(clients: list[ChatClient], seconds: float) -> dict[str, float]:
    recoveries = [one for client in clients for one in client.recoveries] or [0.0]
    acknowledged = sum(len(client.acknowledged) for client in clients)
    times = sorted(moment for client in clients for moment in client.times)
    return {
        "clients": len(clients),
        "acknowledged": acknowledged,
        "repeated": sum(len(client.sent) for client in clients) - acknowledged,
        "seconds": round(seconds, 1),
        "silence": round(max(after - before for before, after in pairwise(times)), 2),
        "recovery_median": round(median(recoveries), 2),
        "recovery_longest": round(max(recoveries), 2),
    }


async def check_database(url: str, clients: list[ChatClient]) -> None:
    async with open_postgres(url) as store:
        await check_store(store, clients)


def pass_time(url: str) -> int:
    """As if the leases of all writers had run out; how many replies are under way."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE writers SET seen = seen - make_interval(secs => 31)")
        ((drafts,),) = db.execute("SELECT count(*) FROM drafts").fetchall()
    return int(drafts)


# --- a server is killed --------------------------------------------------------------------------


def _kill_one(cli: Cli, url: str, size: Size) -> None:
    async def work(servers: tuple[RunningServe, RunningServe]) -> list[ChatClient]:
        async def disaster(_: list[ChatClient]) -> None:
            servers[0].stop(signal.SIGKILL)

        return await chat_through("server killed", servers, size, disaster)

    with two_servers(cli, url) as servers:
        clients = asyncio.run(work(servers))
        assert any(client.problems for client in clients)
    pass_time(url)
    asyncio.run(check_database(url, clients))
    assert pass_time(url) == 0  # opening the store saved the replies that were under way


def test_every_acknowledged_turn_is_there_once_when_a_server_is_killed(
    cli: Cli, postgres: PostgresServer
) -> None:
    _kill_one(cli, postgres.new_url(), SMALL)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_hundred_clients_lose_nothing_when_a_server_is_killed(
    cli: Cli, postgres: PostgresServer
) -> None:
    _kill_one(cli, postgres.new_url(), FULL)


# --- the database is stopped hard ----------------------------------------------------------------


def _stop_database(cli: Cli, size: Size, *, until_everyone_noticed: bool) -> None:
    """Stop it in the middle, and start it again; at once, or after every client got an error."""
    with running_postgres() as database:
        url = database.new_url()

        async def disaster(clients: list[ChatClient]) -> None:
            await asyncio.to_thread(database.stop, "immediate")
            before = sum(len(client.acknowledged) for client in clients)
            if until_everyone_noticed:
                while not all(client.problems for client in clients):
                    await asyncio.sleep(0.1)
            await asyncio.to_thread(database.start)
            back = time.monotonic()
            # they may all have been answered while the start was waited for
            await wait_for_turns(clients, min(before + 1, size.clients * size.turns))
            seconds = round(time.monotonic() - back, 2)
            note_figures("from the database's start to the first turn", seconds)

        with two_servers(cli, url) as servers:
            clients = asyncio.run(chat_through("database stopped", servers, size, disaster))
            assert servers[0].process.poll() is servers[1].process.poll() is None
        for problem in {problem for client in clients for problem in client.problems}:
            assert "cannot reach postgresql://" in problem or "store" in problem, problem
        asyncio.run(check_database(url, clients))


def test_every_acknowledged_turn_is_there_once_when_the_database_is_stopped_hard(cli: Cli) -> None:
    _stop_database(cli, SMALL, until_everyone_noticed=False)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("until_everyone_noticed", [False, True])
def test_a_hundred_clients_lose_nothing_when_the_database_is_stopped_hard(
    cli: Cli, until_everyone_noticed: bool
) -> None:
    _stop_database(cli, FULL, until_everyone_noticed=until_everyone_noticed)


# --- a replica takes over ------------------------------------------------------------------------


def _fail_over(cli: Cli, size: Size) -> None:
    with running_postgres() as primary, running_postgres(follows=primary) as replica:
        schema = primary.new_schema()
        wait_for_replica(primary)
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{replica.port}"
        options = f"target_session_attrs=read-write&options=-csearch_path%3D{schema}"
        url = f"postgresql://postgres:geheim@{hosts}/postgres?{options}"

        async def disaster(_: list[ChatClient]) -> None:
            await asyncio.to_thread(primary.stop, "immediate")
            await asyncio.to_thread(replica.promote)

        with two_servers(cli, url) as servers:
            clients = asyncio.run(chat_through("failover", servers, size, disaster))
            for server in servers:
                assert f"127.0.0.1:{primary.port},127.0.0.1:{replica.port}/" in server.greeting
                assert "geheim" not in server.greeting + "".join(server.log)
        assert "geheim" not in "".join(problem for one in clients for problem in one.problems)
        asyncio.run(check_database(replica.url(schema=schema), clients))


def test_every_acknowledged_turn_is_on_the_replica_that_takes_over(cli: Cli) -> None:
    _fail_over(cli, SMALL)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_a_hundred_clients_lose_nothing_when_a_replica_takes_over(cli: Cli) -> None:
    _fail_over(cli, FULL)
