"""Stores of every released format open, read the same and can be written; newer are refused."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import apsw
import pytest

from recollect.engine import open_store
from recollect.entries import entry_from_json
from recollect.errors import NewerStore
from recollect.store.contract import SessionInfo
from recollect.store.open_file import connect_to_store
from recollect.store.recovery import salvage, store_doctor
from recollect.store.sql_schema import FORMAT
from recollect.testing import user

RELEASED = sorted((Path(__file__).parent / "released").glob("format-*.db"))


def test_there_is_a_store_of_every_format() -> None:
    assert [file.name for file in RELEASED] == [f"format-{n}.db" for n in range(1, FORMAT + 1)]


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_a_store_of_a_released_format_reads_the_same_and_can_be_written(
    file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "store.db"
    shutil.copy(file, path)
    expected = json.loads(file.with_suffix(".json").read_text(encoding="ascii"))

    async def story() -> None:
        async with open_store(path) as store:
            for session, entries in expected.items():
                assert await store.tree(session) == tuple(map(entry_from_json, entries))
                head = (await store.session(session)).head
                (new,) = await store.append(session, [user("onward")], parent=head)
                assert (await store.path(session))[-1] == new

    asyncio.run(story())
    assert store_doctor.examine_store(path).findings == ()


def test_a_newer_store_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    shutil.copy(RELEASED[-1], path)
    db = apsw.Connection(str(path))
    db.pragma("user_version", FORMAT + 1)
    db.execute("UPDATE recollect SET format = ?", (FORMAT + 1,))
    db.close()
    before = path.read_bytes()

    async def story() -> None:
        async with open_store(path):
            pass

    for attempt in (lambda: asyncio.run(story()), lambda: store_doctor.examine_store(path)):
        with pytest.raises(NewerStore, match="Upgrade recollect"):
            attempt()
    assert path.read_bytes() == before


@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_the_doctor_examines_and_rebuilds_a_store_of_a_released_format(
    file: Path, tmp_path: Path
) -> None:
    path, rebuilt = tmp_path / "store.db", tmp_path / "rebuilt.db"
    shutil.copy(file, path)
    assert store_doctor.examine_store(path).findings == ()
    assert path.read_bytes() == file.read_bytes()
    salvage.rebuild_store(path, rebuilt)
    assert store_doctor.examine_store(rebuilt).findings == ()

    async def described(path: Path) -> tuple[SessionInfo, ...]:
        async with open_store(path) as store:
            return (*await store.sessions(), *await store.sessions(trashed=True))

    assert asyncio.run(described(rebuilt)) == asyncio.run(described(path))


def test_a_row_that_was_damaged_before_a_migration_is_found_after_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    shutil.copy(RELEASED[1], path)
    db = apsw.Connection(str(path))
    db.execute("UPDATE sessions SET title = 'another' WHERE session = 1")
    db.close()
    connect_to_store(path, migrate=True).close()
    (finding,) = store_doctor.examine_store(path).findings
    assert finding.place == "sessions 1"
    assert store_doctor.repair_store(path).healthy


def test_a_changed_owner_is_found_by_the_doctor(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    shutil.copy(RELEASED[2], path)
    db = apsw.Connection(str(path))
    db.execute("UPDATE sessions SET owner = 'mallory' WHERE session = 1")
    db.close()
    (finding,) = store_doctor.examine_store(path).findings
    assert finding.what == "row 1 of sessions is not as it was written"
