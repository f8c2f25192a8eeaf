"""Views from a real SQLite store are always the fold of the whole path."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.engine import open_store
from recollect.entries import (
    Body,
    Compaction,
    Elide,
    Elided,
    Entry,
    Message,
    Pin,
    Restore,
    Text,
    ToolResult,
)
from recollect.store.sqlite import SqliteStore
from recollect.testing import call, model, result, user
from recollect.tokens import Counter
from recollect.view.elision_rules import ElisionRules, plan_elisions
from recollect.view.omissions import count_by_category, find_omissions
from recollect.view.view import View
from recollect.view_loader import WINDOW, load_view, read_needed_entries
from tests.view.logs import as_written, logs, name


async def filled(store: SqliteStore, entries: list[Entry]) -> str:
    session = await store.create()
    await store.append(session.id, entries, parent=None)
    return session.id


async def agree(store: SqliteStore, session: str, window: int = WINDOW) -> int:
    """The number of entries that were needed, when the view is right."""
    whole = View.fold(await store.path(session))
    view = await load_view(store, session, window=window)
    assert view.items == whole.items
    assert view.tokens == whole.tokens
    return len(await read_needed_entries(store, session))


def long_log(count: int = 3_000) -> list[Entry]:
    bodies: list[object] = []
    for number in range(count // 4):
        c = call("read_file", id=f"c{number}", path=f"f{number}.py")
        bodies += [user(f"q{number}"), model("look", c), result(c, "text " * 20), model("done")]
    return [Entry(name(i), None, i, body) for i, body in enumerate(bodies)]  # type: ignore[arg-type]


def compaction(**fields: object) -> Compaction:
    return Compaction(status="COMPRESSED", snapshot="the state so far", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edits", "few"),
    [
        pytest.param([], False, id="no compaction"),
        pytest.param([compaction(first_kept=name(2_960))], True, id="compacted"),
        pytest.param([compaction()], True, id="nothing kept"),
        pytest.param(
            [compaction(first_kept=name(2_960), kept=(name(0), name(41), name(42)))],
            True,
            id="kept from before",
        ),
        pytest.param([compaction(first_kept=name(2_000))], True, id="a long tail"),
        pytest.param(
            [
                compaction(first_kept=name(2_000)),
                compaction(first_kept=name(2_960)),
                Restore(entries=(name(3_001),)),
            ],
            True,
            id="the newer of two undone",
        ),
        pytest.param(
            [compaction(first_kept=name(2_960)), Restore(entries=(name(3_000),))],
            False,
            id="undone",
        ),
        pytest.param(
            [compaction(first_kept=name(2_960)), Pin(entries=(name(5),))],
            False,
            id="something old pinned since",
        ),
        pytest.param([compaction(first_kept="f" * 32)], False, id="keeps what does not exist"),
        pytest.param(
            [
                user("the block"),
                Pin(entries=(name(3_000),), first=True),
                user("next"),
                compaction(first_kept=name(3_002), kept=(name(3_000), name(3_001))),
            ],
            True,
            id="placed first before",
        ),
        pytest.param(
            [
                compaction(first_kept=name(2_960)),
                user("the block"),
                Pin(entries=(name(3_001),), first=True),
            ],
            True,
            id="placed first since",
        ),
        pytest.param(
            [
                compaction(first_kept=name(2_960)),
                Elide(rule="drop", items=(Elided(entry=name(2_980), placeholder=""),)),
            ],
            True,
            id="elided since",
        ),
    ],
)
def test_a_view_needs_only_what_follows_the_compaction(
    tmp_path: Path, edits: list[object], few: bool
) -> None:
    async def story() -> None:
        async with open_store(tmp_path / "s.db") as store:
            log = long_log()
            more = [Entry(name(3_000 + i), None, 0, body) for i, body in enumerate(edits)]  # type: ignore[arg-type]
            session = await filled(store, [*log, *more])
            count = await agree(store, session)
            assert (count < len(log)) == few
            head = (await store.session(session)).head
            await store.append(session, [user("go on"), model("yes")], parent=head)
            await agree(store, session)

    asyncio.run(story())


@given(logs(max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_log_gives_the_same_view_from_the_store(
    tmp_path_factory: pytest.TempPathFactory, log: tuple[Entry, ...]
) -> None:
    async def story() -> None:
        place = tmp_path_factory.mktemp("store")
        async with open_store(place / "s.db") as store:
            await agree(store, await filled(store, list(as_written(log))), window=2)

    asyncio.run(story())


def test_loading_a_view_changes_nothing_in_the_store(tmp_path: Path) -> None:
    def facts() -> str:
        db = apsw.Connection(str(tmp_path / "s.db"), flags=apsw.SQLITE_OPEN_READONLY)
        tables = ("entries", "lines", "sessions", "blobs", "projects", "drafts")
        rows = [list(db.execute(f"SELECT * FROM {table}")) for table in tables]
        db.close()
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    async def story() -> None:
        async with open_store(tmp_path / "s.db") as store:
            session = await filled(store, long_log(400))
            await store.index_now()
            before = facts()
            for at in (None, name(100), name(399)):
                view = await load_view(store, session, at=at)
                plan_elisions(view, 10**12, ElisionRules(min_saving=1))
                assert view.items
                view.append(Entry("x" * 32, None, 0, user("only in sight")))
            assert facts() == before
        assert facts() == before

    asyncio.run(story())


class Counting:
    """A counter that keeps the texts it counts."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> int:
        self.texts.append(text)
        return len(text.split())

    @property
    def counter(self) -> Counter:
        return Counter(self, exact=True, name="words/1")


def test_counts_are_shared_with_later_processes(tmp_path: Path) -> None:
    """Another connection knows no more than another process does: what is in the file."""

    async def story() -> None:
        first, second = Counting(), Counting()
        async with open_store(tmp_path / "s.db") as store:
            session = await filled(store, [*long_log(40), *edits()])
            before = await load_view(store, session, counter=first.counter)
            tokens = [item.tokens for item in before.items]
            assert len(first.texts) >= 40
        async with open_store(tmp_path / "s.db") as store:
            after = await load_view(store, session, counter=second.counter)
            assert [item.tokens for item in after.items] == tokens
            assert find_omissions(after) == find_omissions(before)
            assert second.texts == []
            head = (await store.session(session)).head
            await store.append(session, [user("one more thing")], parent=head)
            grown = await load_view(store, session, counter=second.counter)
            assert grown.tokens == after.tokens + 3
            assert second.texts == ["one more thing"]

    asyncio.run(story())


def edits() -> list[Entry]:
    """A message left out, and everything older than the newest compacted."""
    whole = Elided(entry=name(39), placeholder="[gone]")
    held = Compaction(status="COMPRESSED", snapshot="so far, so good", first_kept=name(20))
    bodies: list[Body] = [Elide(rule="drop", items=(whole,)), held]
    return [Entry(name(900 + n), None, 0, body) for n, body in enumerate(bodies)]


def test_rules_count_only_their_placeholders(tmp_path: Path) -> None:
    """Planning in another process, over results of one block and of several."""

    def batch(number: int) -> list[Message]:
        paths = ["a.py", "b.py"]
        c = call("read_many_files", id=f"c{number}", paths=paths)
        texts = tuple(Text(text=f"{path} in read {number} " * 50) for path in paths)
        answer = ToolResult(call_id=c.id, name=c.name, content=texts)
        return [user("go on"), model("I look", c), Message(role="user", parts=(answer,))]

    async def story() -> None:
        rules = ElisionRules(min_saving=1)
        messages = [message for number in range(9) for message in batch(number)]
        log = [Entry(name(i), None, i, message) for i, message in enumerate(messages)]
        first, second = Counting(), Counting()
        async with open_store(tmp_path / "s.db") as store:
            session = await filled(store, log)
            planned = plan_elisions(
                await load_view(store, session, counter=first.counter), 10**12, rules
            )
            assert planned.edits
        async with open_store(tmp_path / "s.db") as store:
            view = await load_view(store, session, counter=second.counter)
            assert plan_elisions(view, 10**12, rules) == planned
            assert count_by_category(view)["results"] > 900
        assert not [text for text in second.texts if " in read " in text]

    asyncio.run(story())


def test_each_counter_has_its_own_counts(tmp_path: Path) -> None:
    async def story() -> None:
        async with open_store(tmp_path / "s.db") as store:
            session = await filled(store, long_log(8))
            words = await load_view(store, session, counter=Counting().counter)
            letters = Counter(len, exact=True, name="letters/1")
            assert (await load_view(store, session, counter=letters)).tokens > words.tokens
            assert (await load_view(store, session)).tokens == View.fold(words.entries).tokens

    asyncio.run(story())


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_counts_are_discarded(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    async def story() -> None:
        path = tmp_path_factory.mktemp("store") / "s.db"
        async with open_store(path) as store:
            session = await filled(store, long_log(8))
            before = await load_view(store, session, counter=Counting().counter)
            db = apsw.Connection(str(path))
            rows = list(db.execute("SELECT key, data FROM counts"))
            key, kept = data.draw(st.sampled_from(rows))
            place = data.draw(st.integers(0, len(kept) * 8 - 1))
            spoilt = bytearray(kept)
            spoilt[place // 8] ^= 1 << place % 8
            db.execute("UPDATE counts SET data = ? WHERE key = ?", (bytes(spoilt), key))
            db.close()
            again = Counting()
            after = await load_view(store, session, counter=again.counter)
            assert after.tokens == before.tokens
            assert again.texts

    asyncio.run(story())
