"""A session's entries form one chain, however many processes and tasks write to it."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from pathlib import Path

import pytest

from recollect.errors import HeadMoved
from recollect.store.open_store import open_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import user
from tests.reliability.children import (
    Child,
    acknowledged,
    assert_contiguous,
    in_store,
    new_session,
    text_of,
)
from tests.reliability.worker import text_for

AT_ONCE = 30.0  # seconds; a busy machine needs some, waiting for a lock takes sixty
PROCESSES = 8


def order(child: Child, session: str, parent: str | None, text: str) -> None:
    child.tell(json.dumps({"session": session, "parent": parent, "text": text}))


def ids_on_path(path: Path, session: str) -> list[str]:
    async def read(store: SqliteStore) -> list[str]:
        entries = await store.path(session)
        assert_contiguous(entries)
        return [entry.id for entry in entries]

    return in_store(path, read)


def stopped_writer_trials(path: Path, trials: int) -> None:
    session = new_session(path)
    sleeper, other = Child("serve", path, session), Child("serve", path, session)
    head: str | None = None
    written: list[str] = []
    for trial in range(1, trials + 1):
        order(sleeper, session, head, f"sleeper {trial}")
        head = sleeper.wait_for("ok", trial)["head"]
        sleeper.signal(signal.SIGSTOP)
        order(other, session, head, f"other {trial}")
        now = other.wait_for("ok", trial)["head"]
        written += [str(head), now]

        began = time.monotonic()
        order(other, session, head, "too late")  # the second writer at the same place
        told = other.wait_for("moved", trial)
        assert time.monotonic() - began < AT_ONCE
        assert (told["expected"], told["actual"]) == (head, now)

        order(sleeper, session, head, "I slept through that")
        sleeper.signal(signal.SIGCONT)
        told = sleeper.wait_for("moved", trial)
        assert (told["expected"], told["actual"]) == (head, now)
        head = now
    sleeper.finish()
    other.finish()
    assert ids_on_path(path, session) == written


def test_a_writer_that_slept_through_an_append_is_refused(tmp_path: Path) -> None:
    stopped_writer_trials(tmp_path / "s.db", 5)


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_two_hundred_writers_that_slept_are_refused(tmp_path: Path) -> None:
    stopped_writer_trials(tmp_path / "s.db", 200)


def stopped_anywhere_trials(path: Path, trials: int) -> None:
    """One writer is stopped wherever it is, perhaps in its commit; the other waits or goes on."""
    session, second = new_session(path), new_session(path)
    racer = Child("append", path, session)
    other = Child("serve", path, second)
    head: str | None = None
    racer.wait_for("ok")
    for trial in range(1, trials + 1):
        time.sleep(random.uniform(0, 0.02))
        racer.signal(signal.SIGSTOP)
        order(other, second, head, f"other {trial}")
        time.sleep(0.05)
        racer.signal(signal.SIGCONT)
        head = other.wait_for("ok", trial)["head"]
    known = acknowledged(racer.kill())
    other.finish()
    assert len(ids_on_path(path, second)) == trials
    assert ids_on_path(path, session)[: len(known)] == known


def test_a_writer_stopped_in_mid_commit_only_delays_the_others(tmp_path: Path) -> None:
    stopped_anywhere_trials(tmp_path / "s.db", 6)


def test_of_racing_tasks_in_one_process_all_but_one_get_head_moved(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_store(tmp_path / "s.db") as store:
            session = (await store.create()).id
            head: str | None = None
            for turn in range(20):
                tries = [
                    store.append(session, [user(f"{turn} {n}")], parent=head) for n in range(8)
                ]
                outcomes = await asyncio.gather(*tries, return_exceptions=True)
                won = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
                lost = [outcome for outcome in outcomes if isinstance(outcome, HeadMoved)]
                assert (len(won), len(lost)) == (1, 7)
                (entry,) = won[0]
                assert {error.actual for error in lost} == {entry.id}
                head = entry.id
            assert len(await store.path(session)) == 20

    asyncio.run(run())


def test_a_task_refused_in_a_shared_commit_does_not_harm_the_others(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_store(tmp_path / "s.db") as store:
            sessions = [(await store.create()).id for _ in range(6)]
            wrong = "f" * 32
            tries = [
                store.append(session, [user("here")], parent=wrong if n % 2 else None)
                for n, session in enumerate(sessions)
            ]
            outcomes = await asyncio.gather(*tries, return_exceptions=True)
            assert [isinstance(o, HeadMoved) for o in outcomes] == [False, True] * 3
            lengths = [len(await store.path(session)) for session in sessions]
            assert lengths == [1, 0] * 3

    asyncio.run(run())


def test_a_refused_batch_leaves_nothing_that_later_entries_depend_on(tmp_path: Path) -> None:
    """Large batches train the dictionary: a batch that is rolled back must take it along."""
    path = tmp_path / "s.db"
    batch = [user(text_for(n)) for n in range(1_000) if n % 29]

    async def write(store: SqliteStore) -> str:
        session = (await store.create()).id
        with pytest.raises(HeadMoved):
            await store.append(session, batch, parent="f" * 32)
        await store.append(session, batch[:50], parent=None)
        return session

    session = in_store(path, write)
    assert len(ids_on_path(path, session)) == 50


def test_a_second_store_in_the_process_does_not_give_up_the_first_ones_locks(
    tmp_path: Path,
) -> None:
    """Closing a file cancels every lock its process holds on it (POSIX), whoever took them. Then
    another process believes itself alone, and deletes the journal that the first still writes."""
    path = tmp_path / "s.db"

    async def write() -> tuple[str, list[str]]:
        async with open_store(path) as store:
            session = (await store.create()).id
            (one,) = await store.append(session, [user("one")], parent=None)
            async with open_store(path):
                pass
            Child("opened", path).finish()  # opens, writes, and closes as the last one
            (two,) = await store.append(session, [user("two")], parent=one.id)
            Child("opened", path).finish()
            (three,) = await store.append(session, [user("three")], parent=two.id)
            seen = Child("serve", path, session)
            order(seen, session, three.id, "four")
            four = seen.wait_for("ok")["head"]
            seen.finish()
            return session, [one.id, two.id, three.id, four]

    session, written = asyncio.run(write())
    assert ids_on_path(path, session) == written


def eight_processes(path: Path, appends: int) -> None:
    sessions = [new_session(path) for _ in range(PROCESSES)]
    children = [Child("starved", path, session, str(appends)) for session in sessions]
    for child, session in zip(children, sessions, strict=True):
        facts = child.finish()
        assert not child.said("error"), child.said("error")[:2]
        assert child.said("warnings")[-1]["warnings"] == []
        assert len(acknowledged(facts)) == appends
        assert ids_on_path(path, session) == acknowledged(facts)

    async def texts(store: SqliteStore) -> list[list[str]]:
        return [[text_of(entry) for entry in await store.path(s)] for s in sessions]

    assert in_store(path, texts) == [[text_for(n) for n in range(appends)]] * PROCESSES


def eight_racers(path: Path, wins: int) -> None:
    session = new_session(path)
    children = [Child("race", path, session, str(wins)) for _ in range(PROCESSES)]
    parents: dict[str, str | None] = {}
    for child in children:
        child.finish()
        assert not child.said("error"), child.said("error")[:2]
        oks = child.said("ok")
        assert len(oks) == wins
        parents |= {fact["head"]: fact["parent"] for fact in oks}

    async def read(store: SqliteStore) -> dict[str, str | None]:
        tree = await store.tree(session)
        path = await store.path(session)
        assert tree == path  # nobody made a branch
        return {entry.id: entry.parent for entry in path}

    found = in_store(path, read)
    assert found == parents
    assert len(found) == PROCESSES * wins


def test_eight_processes_append_to_their_own_sessions_in_one_file(tmp_path: Path) -> None:
    eight_processes(tmp_path / "s.db", 150)


def test_eight_processes_race_for_one_session_and_nothing_interleaves(tmp_path: Path) -> None:
    eight_racers(tmp_path / "s.db", 15)


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("part", range(20))
def test_eight_processes_twenty_times(tmp_path: Path, part: int) -> None:
    eight_processes(tmp_path / "s.db", 500)
    eight_racers(tmp_path / "r.db", 100)


@pytest.mark.parametrize("trial", range(2))
def test_eight_processes_may_make_the_same_store_at_once(tmp_path: Path, trial: int) -> None:
    path = tmp_path / "new" / "s.db"
    children = [Child("opened", path) for _ in range(PROCESSES)]
    for child in children:
        child.finish()
        assert not child.said("error"), child.said("error")

    async def count(store: SqliteStore) -> int:
        return len(await store.sessions())

    assert in_store(path, count) == PROCESSES
