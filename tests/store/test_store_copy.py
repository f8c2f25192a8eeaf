"""A copy of a store is equal in every read, and copying again adds nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeAlias

import apsw
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.entries import Body, Entry, Note, Source, Title
from recollect.store.contract import Project, SearchQuery, Store
from recollect.store.ids import new_id
from recollect.store.open_store import open_store
from recollect.store.store_copy import CopyReport, copy_store
from recollect.testing import call, model, result, user
from tests.both_stores import OpenStore
from tests.strategies import bodies

NewPair: TypeAlias = Callable[[], tuple[OpenStore, OpenStore]]
LONG = "a long text that is stored by its content " * 200


async def copied(source: Store, target: Store) -> CopyReport:
    report = await copy_store(source, target, lambda _: None)
    assert report.not_copied == ()
    return report


async def every_read(store: Store) -> dict[str, object]:
    """All that the contract lets anybody read of the store."""
    infos = (*await store.sessions(), *await store.sessions(trashed=True))
    found: dict[str, object] = {"sessions": infos, "sources": await store.sources()}
    for info in infos:
        tree = sorted(await store.tree(info.id), key=lambda entry: entry.id)
        found[info.id] = (
            await store.session(info.id),
            await store.project_of(info.id),
            await store.path(info.id),
            tree,
            [await store.path(info.id, at=entry.id) for entry in tree[-5:]],
            await store.page(info.id, start=1, limit=3),
        )
    digests = await store.blobs()
    found["contents"] = [(digest, await store.blob(digest)) for digest in digests]
    hits = await store.search(SearchQuery("long text", limit=10_000))
    found["search"] = sorted((hit.session.id, hit.entry.id) for hit in hits)
    return found


class Writer:
    """Fills a store at random: forks of forks, rewinds, branches, renames, trash."""

    def __init__(self, store: Store, choose: random.Random, items: list[Body]) -> None:
        self.store, self.choose, self.items = store, choose, items
        self.sessions: list[str] = []
        self.time = 1_000

    async def write(self, steps: int) -> None:
        await self._create()
        for _ in range(steps):
            step = self.choose.choice(
                [self._append] * 6
                + [self._create, self._fork, self._fork, self._rewind, self._rewind]
                + [self._branch, self._rename, self._trash, self._put]
            )
            await step()

    def _session(self) -> str:
        return self.choose.choice(self.sessions)

    def _new(self) -> list[Body | Entry]:
        made: list[Body | Entry] = []
        for _ in range(self.choose.choice([1, 1, 2, 3, 9])):
            self.time += self.choose.randrange(3)
            made.append(Entry(new_id(), None, self.time, self.choose.choice(self.items)))
        return made

    async def _entry(self, session: str) -> str | None:
        """Of the session or of what it inherited."""
        within = (*await self.store.tree(session), *await self.store.path(session))
        return self.choose.choice([None, *(entry.id for entry in within)])

    async def _create(self) -> None:
        project = self.choose.choice(
            [None, Project("/x"), Project("/x", git="1" * 40), Project("/y", inode="1:1")]
        )
        self.time += 1
        info = await self.store.create(
            project=project,
            title=self.choose.choice(["", "a title", "/command"]),
            created=self.time,
            owner=self.choose.choice(["", "anna", "bo"]),
        )
        self.sessions.append(info.id)

    async def _append(self) -> None:
        session = self._session()
        head = (await self.store.session(session)).head
        await self.store.append(session, self._new(), parent=head)

    async def _fork(self) -> None:
        session = self._session()
        at = await self._entry(session)
        owner = self.choose.choice([None, "anna"])
        forked = await self.store.fork(session, at=at, title="", owner=owner)
        self.sessions.append(forked.id)

    async def _rewind(self) -> None:
        session = self._session()
        await self.store.rewind(session, await self._entry(session))

    async def _branch(self) -> None:
        session = self._session()
        await self.store.branch(session, self._new(), at=await self._entry(session))

    async def _rename(self) -> None:
        session, self.time = self._session(), self.time + 1
        title = Title(title=f"title {self.choose.randrange(9)}")
        head = (await self.store.session(session)).head
        await self.store.append(session, [Entry(new_id(), None, self.time, title)], parent=head)

    async def _trash(self) -> None:
        session = self._session()
        if (await self.store.session(session)).trashed is None:
            await self.store.trash(session)
        else:
            await self.store.restore(session)

    async def _put(self) -> None:
        await self.store.put(f"content {self.choose.randrange(99)}".encode())


READ = call("read_file", path="a.py")
ITEMS: list[Body] = [
    user("hello 模型"),
    model("looking", READ),
    result(READ, LONG),
    user(LONG),
    Title(title="named in the log"),
    Note(text="odd \ud800 \0", extra='{"newer":[1]}'),
    Source(format="gemini", name="a file", size=3, blobs=("0" * 64,)),
]


def between(
    stores: tuple[OpenStore, OpenStore], story: Callable[[Store, Store], Awaitable[None]]
) -> None:
    """Run a story with two stores."""

    async def opened() -> None:
        async with stores[0]() as source, stores[1]() as target:
            await story(source, target)

    asyncio.run(opened())


@pytest.fixture(
    params=["sqlite-sqlite", "sqlite-postgres", "postgres-sqlite", "postgres-postgres"],
    scope="session",
)
def new_pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> NewPair:
    """Makes two empty stores."""
    source, target = request.param.split("-")

    def make(kind: str) -> OpenStore:
        if kind == "sqlite":
            path = tmp_path_factory.mktemp("copy") / "store.db"
            return lambda: open_store(path)
        url = request.getfixturevalue("postgres").new_url()
        return lambda: open_store(url)

    return lambda: (make(source), make(target))


@given(st.integers(0, 2**32), st.lists(bodies, max_size=5), st.integers(5, 40))
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_copy_of_any_store_is_equal_in_every_read(
    new_pair: NewPair, seed: int, items: list[Body], steps: int
) -> None:
    async def story(source: Store, target: Store) -> None:
        writer = Writer(source, random.Random(seed), [*ITEMS, *items])
        await writer.write(steps)
        await copied(source, target)
        assert await every_read(target) == await every_read(source)
        # the source goes on, and is copied again: only what is new is written
        before = sum([len(await source.tree(session)) for session in writer.sessions])
        await writer.write(5)
        after = sum([len(await source.tree(session)) for session in writer.sessions])
        report = await copied(source, target)
        assert (report.entries, report.new_entries) == (after, after - before)
        assert await every_read(target) == await every_read(source)
        again = await copied(source, target)
        assert (again.new_sessions, again.new_entries, again.new_contents) == (0, 0, 0)

    between(new_pair(), story)


def test_a_fork_is_copied_without_what_it_inherited(new_pair: NewPair) -> None:
    async def story(source: Store, target: Store) -> None:
        session = await source.create()
        entries = await source.append(session.id, [user("one"), user("two")], parent=None)
        forks = [await source.fork(session.id, at=entries[0].id) for _ in range(3)]
        report = await copied(source, target)
        assert (report.sessions, report.entries) == (4, 2)
        assert (await target.facts())["entries"] == 2
        for forked in forks:
            assert await target.session(forked.id) == forked
            assert await target.path(forked.id) == entries[:1]

    between(new_pair(), story)


def test_the_time_of_last_use_stays_the_same_where_a_clock_went_backwards(
    new_pair: NewPair,
) -> None:
    async def story(source: Store, target: Store) -> None:
        session = await source.create(created=1)
        for time in (5, 900, 7, 8):
            new = Entry(new_id(), None, time, user(f"at {time}"))
            head = (await source.session(session.id)).head
            await source.append(session.id, [new], parent=head)
            if time == 900:  # the session goes on after the branch, in a segment of its own
                aside = Entry(new_id(), None, 6, user("aside"))
                await source.branch(session.id, [aside], at=None)
        assert (await source.session(session.id)).used == 900
        await copied(source, target)
        assert await every_read(target) == await every_read(source)

    between(new_pair(), story)


def test_the_hashes_of_entries_stay_the_same(tmp_path: Path) -> None:
    async def story(source: Store, target: Store) -> None:
        await Writer(source, random.Random(5), ITEMS).write(60)
        await copied(source, target)

    def hashes(path: Path) -> dict[bytes, bytes]:
        with closing(apsw.Connection(str(path))) as db:
            return dict(db.execute("SELECT id, hash FROM entries"))

    files = tmp_path / "source.db", tmp_path / "target.db"
    between((lambda: open_store(files[0]), lambda: open_store(files[1])), story)
    assert hashes(files[1]) == hashes(files[0])


def test_a_session_that_went_on_in_the_target_keeps_its_head_and_gets_what_is_new(
    new_pair: NewPair,
) -> None:
    async def story(source: Store, target: Store) -> None:
        session = await source.create(title="shared")
        (first,) = await source.append(session.id, [user("one")], parent=None)
        await copied(source, target)
        (theirs,) = await target.append(session.id, [user("there")], parent=first.id)
        ours = await source.append(session.id, [user("two"), user("three")], parent=first.id)
        renamed = await source.rename(session.id, "renamed here")
        report = await copied(source, target)
        assert (report.continued, report.new_entries) == ((session.id,), 3)
        assert await target.path(session.id) == (first, theirs)
        assert await target.path(session.id, at=ours[1].id) == (first, *ours)
        assert (await target.session(session.id)).title == "shared"
        assert renamed.head in {entry.id for entry in await target.tree(session.id)}
        assert (await copied(source, target)).new_entries == 0

    between(new_pair(), story)


def test_a_session_that_cannot_be_copied_does_not_stop_the_others(new_pair: NewPair) -> None:
    async def story(source: Store, target: Store) -> None:
        session = await source.create()
        entries = await source.append(session.id, [user("taken")], parent=None)
        fork = await source.fork(session.id)
        other = await source.create()
        await source.append(other.id, [user("free")], parent=None)
        elsewhere = await target.create()
        await target.append(elsewhere.id, entries, parent=None)
        report = await copy_store(source, target, lambda _: None)
        (failure,) = report.not_copied
        assert failure.session == session.id
        assert "there is already an entry" in failure.why
        assert (report.sessions, report.new_entries) == (2, 1)
        assert await target.path(fork.id) == entries

    between(new_pair(), story)


def test_a_session_that_is_not_the_same_afterwards_is_reported(new_pair: NewPair) -> None:
    async def story(source: Store, target: Store) -> None:
        session = await source.create()
        (entry,) = await source.append(session.id, [user("one")], parent=None)
        await target.adopt(session, None)
        other = msgspec.structs.replace(entry, body=user("another text"))
        await target.append(session.id, [other], parent=None)
        report = await copy_store(source, target, lambda _: None)
        (failure,) = report.not_copied
        assert "their hashes differ" in failure.why

    between(new_pair(), story)
