from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from recollect import Entry
from recollect.engine import SearchQuery, open_store
from recollect.entries import Note
from recollect.errors import Damaged
from recollect.store.contract import OnDamage
from recollect.store.log_reader import QUARANTINED, UNREADABLE
from recollect.store.recovery import store_doctor
from recollect.testing import model, user


async def _fill(path: Path) -> tuple[str, tuple[Entry, ...]]:
    async with open_store(path) as store:
        session = await store.create()
        talk = [model("long " * 2_000) if n == 3 else user(f"message {n}") for n in range(10)]
        entries = await store.append(session.id, talk, parent=None)
        return session.id, entries


@pytest.fixture
def store(tmp_path: Path) -> tuple[Path, str, tuple[Entry, ...]]:
    path = tmp_path / "store.db"
    return (path, *asyncio.run(_fill(path)))


def damage(path: Path, *statements: str) -> None:
    db = apsw.Connection(str(path))
    db.pragma("foreign_keys", "off")
    for statement in statements:
        db.execute(statement)
    db.close()


def read(path: Path, session: str, damaged: OnDamage = "refuse") -> tuple[Entry, ...]:
    async def story() -> tuple[Entry, ...]:
        async with open_store(path) as opened:
            return await opened.path(session, damaged=damaged)

    return asyncio.run(story())


Filled = tuple[Path, str, tuple[Entry, ...]]


def test_a_healthy_store_has_no_findings(store: Filled) -> None:
    report = store_doctor.examine_store(store[0])
    assert report.findings == ()
    assert report.healthy
    assert report.facts["entries"] == 10
    assert report.facts["permissions"] == "0600"
    assert store_doctor.repair_store(store[0]).findings == ()


def test_a_store_that_does_not_exist_is_healthy(tmp_path: Path) -> None:
    assert store_doctor.examine_store(tmp_path / "none.db").healthy
    assert list(tmp_path.iterdir()) == []


def test_examining_changes_nothing(store: Filled) -> None:
    path, session, _ = store
    damage(path, "UPDATE entries SET body = x'7b7d' WHERE key & 255 = 5")
    before = path.read_bytes()
    assert not store_doctor.examine_store(path).healthy
    assert path.read_bytes() == before
    with pytest.raises(Damaged):
        read(path, session)


def test_a_damaged_body_is_named_contained_and_quarantined(store: Filled) -> None:
    path, session, entries = store
    damage(path, "UPDATE entries SET body = x'7b227d' WHERE key & 255 = 5")
    with pytest.raises(Damaged) as caught:
        read(path, session)
    assert caught.value.entries == (entries[4].id,)
    (finding,) = store_doctor.examine_store(path).findings
    assert finding.entries == (entries[4].id,)
    assert store_doctor.repair_store(path).healthy
    after = read(path, session)
    assert after[4].body == Note(text=QUARANTINED, level="error")
    assert after[:4] + after[5:] == entries[:4] + entries[5:]
    assert store_doctor.examine_store(path).facts["quarantined"] == 1


def test_the_rest_of_a_damaged_session_can_be_read_before_any_repair(store: Filled) -> None:
    path, session, entries = store
    damage(path, "UPDATE entries SET body = x'7b227d' WHERE key & 255 = 5")
    marked = read(path, session, "mark")
    assert marked[4].body == Note(text=UNREADABLE, level="error")
    assert marked[5:] == entries[5:]


def test_a_damaged_hash_is_recomputed_when_the_next_entry_confirms_it(store: Filled) -> None:
    path, session, entries = store
    damage(path, "UPDATE entries SET hash = randomblob(16) WHERE key & 255 = 5")
    assert not store_doctor.examine_store(path).healthy
    assert store_doctor.repair_store(path).healthy
    assert read(path, session) == entries


def test_missing_entries_become_notes_and_the_rest_stays(store: Filled) -> None:
    path, session, entries = store
    damage(path, "DELETE FROM entries WHERE key & 255 IN (5, 6)")
    with pytest.raises(Damaged, match="missing"):
        read(path, session)
    assert store_doctor.repair_store(path).healthy
    after = read(path, session)
    assert [entry.id for entry in after[:4] + after[6:]] == [
        entry.id for entry in entries[:4] + entries[6:]
    ]
    assert all(isinstance(entry.body, Note) for entry in after[4:6])


def test_missing_newest_entries_are_detected(store: Filled) -> None:
    path, session, _ = store
    damage(path, "DELETE FROM entries WHERE key & 255 > 7")
    with pytest.raises(Damaged, match="newest 3 entries"):
        read(path, session)
    assert not store_doctor.examine_store(path).healthy


def test_damaged_content_costs_only_its_entry(store: Filled) -> None:
    path, session, entries = store
    damage(path, "UPDATE blobs SET data = x'00'")
    places = {finding.place for finding in store_doctor.examine_store(path).findings}
    assert places == {"blob 1", "segment 1"}
    assert store_doctor.repair_store(path).healthy
    after = read(path, session)
    assert after[:3] + after[4:] == entries[:3] + entries[4:]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET title = 'forged'",
        "UPDATE sessions SET created = 5",
        "UPDATE sessions SET trashed = 5",
        "UPDATE lines SET depth = 7",
        "UPDATE lines SET base = 16777217 WHERE line = 1",
    ],
)
def test_rows_outside_the_hash_chain_have_a_checksum(statement: str, store: Filled) -> None:
    damage(store[0], statement)
    assert not store_doctor.examine_store(store[0]).healthy


def test_a_wrong_search_index_is_detected_and_rebuilt(store: Filled) -> None:
    path, _, entries = store
    damage(
        path,
        "INSERT INTO search(search) VALUES ('delete-all')",
        "INSERT INTO search(rowid, text) VALUES (16777217, 'forged')",
    )
    assert [finding.place for finding in store_doctor.examine_store(path).findings] == ["search"]
    assert store_doctor.repair_store(path).healthy

    async def story() -> list[str]:
        async with open_store(path) as opened:
            assert await opened.search(SearchQuery(words="forged")) == ()
            return [hit.entry.id for hit in await opened.search(SearchQuery(words="message"))]

    assert asyncio.run(story()) == [e.id for e in reversed(entries) if e is not entries[3]]


def test_a_file_with_a_broken_structure_is_rebuilt_and_the_old_one_kept(store: Filled) -> None:
    path, session, entries = store
    data = bytearray(path.read_bytes())
    data[:100] = bytes(100)
    path.write_bytes(data)
    with pytest.raises(Damaged):
        read(path, session)
    report = store_doctor.repair_store(path)
    assert report.healthy
    assert read(path, session) == entries
    (aside,) = path.parent.glob("store.db.damaged-*")
    assert aside.read_bytes() == bytes(data)
    assert report.facts["put_aside"] == [aside.name]
    assert path.stat().st_mode & 0o777 == 0o600


def test_segments_and_sessions_whose_rows_are_lost_are_restored(store: Filled) -> None:
    path, session, entries = store

    async def grow() -> None:
        async with open_store(path) as opened:
            forked = await opened.fork(session, at=entries[4].id)
            await opened.append(forked.id, [user("other way")], parent=entries[4].id)

    asyncio.run(grow())
    damage(path, "DELETE FROM lines WHERE line = 2", "DELETE FROM sessions WHERE session = 2")
    data = bytearray(path.read_bytes())
    data[:100] = bytes(100)
    path.write_bytes(data)
    assert store_doctor.repair_store(path).healthy

    async def tree() -> set[str]:
        async with open_store(path) as opened:
            found = [e.id for s in await opened.sessions() for e in await opened.tree(s.id)]
            return set(found)

    assert {entry.id for entry in entries} < asyncio.run(tree())


def crashed(path: Path) -> str:
    """The session of a writer that died after thirty appends, all of them in the journal."""
    crash = """
import asyncio, os, sys
from pathlib import Path
from recollect.store.sqlite import SqliteStore
from recollect.testing import user
async def main():
    store = SqliteStore(Path(sys.argv[1]))
    session = await store.create()
    parent = None
    for n in range(30):
        (entry,) = await store.append(session.id, [user(f"message {n}")], parent=parent)
        parent = entry.id
    print(session.id, flush=True)
    os._exit(1)
asyncio.run(main())
"""
    arguments = [sys.executable, "-c", crash, str(path)]
    return subprocess.run(arguments, capture_output=True, text=True).stdout.strip()


def test_a_writer_killed_between_a_frames_header_and_its_page_is_not_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    session = crashed(path)
    journal = path.with_name("store.db-wal")
    data = journal.read_bytes()
    journal.write_bytes(data + data[-4120:-4096])  # the header of one more commit, without its page

    async def story() -> None:
        async with open_store(path) as opened:
            assert opened.warnings == []
            assert len(await opened.path(session)) == 30

    asyncio.run(story())


def test_entries_behind_a_damaged_frame_of_the_journal_are_restored(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    session = crashed(path)
    journal = path.with_name("store.db-wal")
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 4
    journal.write_bytes(data)

    async def before() -> int:
        async with open_store(path) as opened:
            assert "the journal of store.db was damaged" in opened.warnings[0]
            return len(await opened.path(session))

    assert asyncio.run(before()) < 30
    report = store_doctor.repair_store(path)
    assert report.healthy, report
    assert len(read(path, session)) >= 28


def test_one_damaged_copy_of_the_dictionary_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def fill() -> tuple[str, tuple[Entry, ...]]:
        async with open_store(path) as opened:
            session = await opened.create()
            talk = [user(f"the quick brown fox jumps {n} times over " * 5) for n in range(600)]
            return session.id, await opened.append(session.id, talk, parent=None)

    session, entries = asyncio.run(fill())
    damage(path, "UPDATE dictionaries SET data = zeroblob(length(data)) WHERE copy = 1")
    assert read(path, session) == entries
    assert not store_doctor.examine_store(path).healthy
    assert store_doctor.repair_store(path).healthy
    assert store_doctor.examine_store(path).healthy


@pytest.mark.parametrize("value", ["2", "'text'", "2.5"])
def test_a_body_of_another_type_stops_neither_the_index_nor_the_rest(
    store: Filled, value: str
) -> None:
    path, session, entries = store
    damage(
        path,
        f"UPDATE entries SET body = {value} WHERE key & 16777215 = 5",
        "UPDATE lines SET indexed = 0",
        "INSERT INTO search(search) VALUES ('delete-all')",
        "INSERT OR IGNORE INTO pending SELECT line FROM lines",
    )

    async def story() -> None:
        async with open_store(path) as opened:
            found = await opened.search(SearchQuery(words="message"))
            assert {hit.entry.id for hit in found} >= {entries[0].id, entries[9].id}
            with pytest.raises(Damaged):
                await opened.path(session)

    asyncio.run(story())
    assert not store_doctor.examine_store(path).healthy
    store_doctor.repair_store(path)
    assert [e.id for e in read(path, session, "mark")] == [e.id for e in entries]
