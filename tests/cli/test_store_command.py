"""`recollect store`: what it shows, and copies that are interrupted and killed."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TypeVar

import apsw
import psycopg
import pytest

from recollect.store.contract import Store
from recollect.store.open_store import open_store
from recollect.store.postgres.tables import TABLES
from recollect.store.sql_schema import FORMAT
from recollect.testing import user
from tests.cli.runner import Cli
from tests.postgres_server import PostgresServer
from tests.store.test_store_copy import ITEMS, Writer, every_read

T = TypeVar("T")


def with_store(where: Path | str, work: Callable[[Store], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with open_store(where) as store:
            return await work(store)

    return asyncio.run(opened())


async def fill(store: Store) -> None:
    writer = Writer(store, random.Random(7), ITEMS)
    await writer.write(400)


def entries_in(where: Path | str) -> int:
    """What another process has written there so far; 0 while there is no store yet."""
    if isinstance(where, str):
        with psycopg.connect(where) as db, suppress(psycopg.errors.UndefinedTable):
            return int(db.execute("SELECT count(*) FROM entries").fetchall()[0][0])
        return 0
    if not where.exists():
        return 0
    with closing(apsw.Connection(str(where), flags=apsw.SQLITE_OPEN_READONLY)) as file:
        file.set_busy_timeout(10_000)
        return int(next(iter(file.execute("SELECT count(*) FROM entries")))[0])


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_copy_that_is_killed_again_and_again_goes_on_and_adds_nothing_twice(
    cli: Cli, kind: str, request: pytest.FixtureRequest
) -> None:
    source = cli.project / "source.db"
    target: Path | str = cli.project / "target.db"
    if kind == "postgres":
        target = request.getfixturevalue("postgres").new_url()
    with_store(source, fill)
    total = entries_in(source)
    kills = 0
    for share in (0.0, 0.1, 0.3, 0.6, 0.9):
        copying = cli.start("store", "copy", str(source), str(target))
        while copying.poll() is None and entries_in(target) <= share * total:
            pass
        kills += copying.poll() is None
        copying.send_signal(signal.SIGKILL)
        copying.communicate()
    assert kills >= 3
    assert 0 < entries_in(target) <= total
    done = cli.ok("store", "copy", str(source), str(target)).out
    assert "by number and hash of the entries" in done
    assert with_store(target, every_read) == with_store(source, every_read)
    assert entries_in(target) == total
    assert "nothing new to copy" in cli.ok("store", "copy", str(source), str(target)).out


def test_an_interrupted_copy_says_that_it_can_go_on(cli: Cli) -> None:
    source, target = cli.project / "source.db", cli.project / "target.db"
    with_store(source, fill)
    copying = cli.start("store", "copy", str(source), str(target))
    while copying.poll() is None and entries_in(target) == 0:
        pass
    copying.send_signal(signal.SIGINT)
    _, said = copying.communicate()
    assert copying.returncode == 130
    assert b"the same command goes on from there" in said
    cli.ok("store", "copy", str(source), str(target))
    assert with_store(target, every_read) == with_store(source, every_read)


def test_status_shows_what_a_store_holds(cli: Cli) -> None:
    assert "there is no such file" in cli("store", "status").err
    cli.session([user("one"), user("two")])
    shown = cli.ok("store", "status").out
    assert str(cli.store) in shown
    facts = cli.ok("store", "status", str(cli.store), "--json").json
    assert (facts["sessions"], facts["entries"], facts["format"]) == (1, 2, FORMAT)
    assert facts["kind"].startswith("SQLite")


def test_init_creates_a_private_store_and_leaves_one_alone(cli: Cli) -> None:
    path = cli.project / "new.db"
    assert cli.ok("store", "init", str(path), "--json").json["sessions"] == 0
    assert path.stat().st_mode & 0o777 == 0o600
    cli.session([user("one")])
    assert cli.ok("store", "init", str(cli.store), "--json").json["sessions"] == 1


def test_a_copy_needs_two_stores_the_first_of_which_exists(cli: Cli) -> None:
    cli.session([user("one")])
    here = str(cli.store)
    assert "there is no such file" in cli("store", "copy", "none.db", "other.db").err
    assert not (cli.project / "other.db").exists()
    same = cli("store", "copy", here, f"sqlite:///{here}")
    assert (same.code, "copied into itself" in same.err) == (1, True)
    report = cli.ok("store", "copy", here, "other.db", "--json").json
    assert (report["new_sessions"], report["new_entries"]) == (1, 1)


def test_a_database_is_set_up_filled_and_used_like_a_file(
    cli: Cli, postgres: PostgresServer
) -> None:
    cli.session([user("a needle"), user("two")])
    url = postgres.new_url()
    assert cli.ok("store", "init", url, "--json").json["sessions"] == 0
    assert "copied 1 session, 2 entries" in cli.ok("store", "copy", str(cli.store), url).out
    facts = cli.ok("store", "status", url, "--json").json
    assert (facts["sessions"], facts["entries"]) == (1, 2)
    assert facts["kind"].startswith("PostgreSQL")
    cli.store.unlink()
    env = {"RECOLLECT_STORE": url}
    assert "a needle" in cli.ok("sessions", env=env).out
    assert "a needle" in cli.ok("show", "last", "--store", url).out
    assert "needle" in cli.ok("search", "needle", env=env).out
    assert "back again" in cli.ok("rename", "last", "back again", env=env).out
    cli.ok("store", "copy", url, str(cli.store))
    assert "back again" in cli.ok("sessions").out


def test_tables_are_distributed_only_where_citus_is(cli: Cli, postgres: PostgresServer) -> None:
    url = postgres.new_url()
    printed = cli.ok("store", "init", url, "--distribute", "citus", "--dry-run").out.splitlines()
    assert printed[0] == "SELECT create_reference_table('projects');"
    assert printed[1] == (
        "SELECT create_distributed_table('sessions', 'tree', colocate_with => 'none');"
    )
    beside = "SELECT create_distributed_table('entries', 'tree', colocate_with => 'sessions');"
    assert beside in printed
    assert len(printed) == len(TABLES) + 1
    refused = cli("store", "init", url, "--distribute", "citus")
    assert refused.code == 1
    assert "it has no extension `citus`, nothing was distributed" in refused.err
    in_file = cli("store", "init", "a.db", "--distribute", "citus")
    assert (in_file.code, "is for PostgreSQL" in in_file.err) == (2, True)
    assert cli("store", "init", url, "--dry-run").code == 2


def test_a_database_that_does_not_answer_is_an_error_without_its_password(cli: Cli) -> None:
    url = "postgresql://me:hunter2@127.0.0.1:9/db"
    for command in (("store", "status", url), ("sessions", "--store", url)):
        refused = cli(*command)
        assert refused.code == 1
        assert "postgresql://me@127.0.0.1:9/db" in refused.err
        assert "hunter2" not in refused.out + refused.err
