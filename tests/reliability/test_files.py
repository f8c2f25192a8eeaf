"""Files that are not stores, or not ours, are refused with a reason and not changed."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from recollect.errors import CannotOpen, NewerStore, StoreError
from recollect.store.recovery.store_doctor import examine_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import user
from tests.reliability.children import WORKER, in_store


async def _nothing(store: SqliteStore) -> None:
    await store.sessions()


def contents(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in directory.iterdir()}


def assert_untouched(directory: Path, before: dict[str, bytes]) -> None:
    """Looking into a file in WAL mode may leave an empty journal and shared memory beside it."""
    after = contents(directory)
    after.pop("s.db-shm", None)
    if after.get("s.db-wal") == b"":
        del after["s.db-wal"]
    assert after == before


def make_store(path: Path) -> str:
    async def write(store: SqliteStore) -> str:
        session = await store.create()
        await store.append(session.id, [user(f"hello {n}") for n in range(20)], parent=None)
        return session.id

    return in_store(path, write)


def other_database(path: Path, *, journal: str = "delete", version: int = 0) -> None:
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA journal_mode={journal}")
        db.execute("CREATE TABLE entries(key INTEGER PRIMARY KEY, body BLOB)")
        db.execute("INSERT INTO entries VALUES (1, 'theirs')")
        db.execute(f"PRAGMA user_version={version}")
    db.close()


@pytest.mark.parametrize("what", ["100 bytes", "text", "random", "half a header", "directory"])
def test_a_file_that_is_not_a_store_is_refused_and_not_changed(tmp_path: Path, what: str) -> None:
    path = tmp_path / "s.db"
    noise = random.Random(1).randbytes(20_000)
    if what == "directory":
        path.mkdir()
    else:
        data = {"100 bytes": noise[:100], "text": b"Dear diary\n" * 900, "random": noise}
        path.write_bytes(data.get(what, b"SQLite format 3\x00\x10\x00"))
    before = {} if path.is_dir() else contents(tmp_path)
    with pytest.raises(StoreError):
        in_store(path, _nothing)
    assert path.is_dir() or contents(tmp_path) == before


@pytest.mark.parametrize("name", ["s.db", "s.db-wal"])
def test_a_pipe_in_the_place_of_a_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    make_store(tmp_path / "s.db")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(CannotOpen, match="not a file but a pipe"):
        in_store(tmp_path / "s.db", _nothing)
    with pytest.raises(CannotOpen, match="not a file but a pipe"):
        examine_store(tmp_path / "s.db")


def test_an_empty_file_is_refused_because_a_lost_store_looks_like_it(tmp_path: Path) -> None:
    """A store that was truncated to nothing must not silently become a new one."""
    path = tmp_path / "s.db"
    path.touch()
    with pytest.raises(StoreError):
        in_store(path, _nothing)
    assert contents(tmp_path) == {"s.db": b""}


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("version", [0, 1, 2, 7])
def test_another_programs_database_is_refused_and_left_alone(
    tmp_path: Path, journal: str, version: int
) -> None:
    path = tmp_path / "s.db"
    other_database(path, journal=journal, version=version)
    before = contents(tmp_path)
    with pytest.raises((CannotOpen, NewerStore)):
        in_store(path, _nothing)
    assert_untouched(tmp_path, before)


def test_a_store_of_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    make_store(path)
    db = apsw.Connection(str(path))
    db.pragma("user_version", 999)
    db.execute("UPDATE recollect SET format = 999")
    db.close()
    before = contents(tmp_path)
    with pytest.raises(NewerStore) as raised:
        in_store(path, _nothing)
    assert raised.value.found == 999
    assert_untouched(tmp_path, before)


def test_a_later_versions_journal_is_left_alone_as_well(tmp_path: Path) -> None:
    """A newer version crashed: replaying its journal is not for a version that is older."""
    path = tmp_path / "s.db"
    make_store(path)
    code = (
        "import apsw, os, sys; db = apsw.Connection(sys.argv[1]); db.pragma('user_version', 999);"
        "db.execute('UPDATE recollect SET format = 999'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    shared = path.with_name("s.db-shm")
    shared.unlink()
    before = contents(tmp_path)
    assert "s.db-wal" in before
    with pytest.raises(NewerStore):
        in_store(path, _nothing)
    shared.unlink(missing_ok=True)
    assert contents(tmp_path) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="permissions are tested by giving up root's")
@pytest.mark.parametrize("what", ["directory", "file"])
def test_a_read_only_place_is_a_clear_error(tmp_path: Path, what: str) -> None:
    place = Path(f"/tmp/recollect-read-only-{os.getpid()}-{what}")
    place.mkdir()
    path = place / "s.db"
    try:
        if what == "file":
            make_store(path)
            path.chmod(0o444)
        place.chmod(0o555)
        done = subprocess.run(
            [sys.executable, str(WORKER), "opened_as_nobody", str(path)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 3, done.stderr
        assert '"error"' in done.stdout
        assert "read-only" in done.stdout or "Permission denied" in done.stdout
    finally:
        place.chmod(0o755)
        for file in place.iterdir():
            file.unlink()
        place.rmdir()
