"""The file of an open store is deleted, moved or replaced: nothing acknowledged is lost, the writer
is told, and what lies in its place is not touched."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.errors import CannotOpen
from recollect.store.recovery.store_doctor import examine_store, repair_store
from recollect.store.sqlite import SqliteStore
from recollect.testing import user
from tests.reliability.children import (
    Child,
    acknowledged,
    copy_store,
    in_store,
    new_session,
    note_figures,
)

SUFFIXES = ("", "-wal", "-shm")


def _other_program(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs(word TEXT)")
        db.execute("INSERT INTO theirs VALUES ('kept')")
    db.close()


def other_store(path: Path) -> None:
    async def fill(store: SqliteStore) -> None:
        session = await store.create(title="another store")
        await store.append(session.id, [user("of the other store")] * 3, parent=None)

    in_store(path, fill)


def delete(path: Path) -> None:
    path.unlink()


def delete_all(path: Path) -> None:
    for suffix in SUFFIXES:
        path.with_name(path.name + suffix).unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


def delete_journal(path: Path) -> None:
    path.with_name(f"{path.name}-wal").unlink()


def delete_shared_memory(path: Path) -> None:
    path.with_name(f"{path.name}-shm").unlink()


def replace_by_store(path: Path) -> None:
    (path.parent / "other.db").rename(path)


def replace_by_program(path: Path) -> None:
    (path.parent / "program.db").rename(path)


def replace_by_backup(path: Path) -> None:
    """As a program does that restores a backup: a copy, and a rename."""
    (path.parent / "backup.db").rename(path)


def overwrite_by_backup(path: Path) -> None:
    """`cp -p` writes into the file that is there."""
    subprocess.run(["cp", "-p", str(path.parent / "backup.db"), str(path)], check=True)


def overwrite_by_program(path: Path) -> None:
    subprocess.run(["cp", str(path.parent / "program.db"), str(path)], check=True)


def rename_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("renamed"))


DISASTERS: tuple[Callable[[Path], None], ...] = (
    delete,
    delete_all,
    move,
    delete_journal,
    delete_shared_memory,
    replace_by_store,
    replace_by_program,
    replace_by_backup,
    overwrite_by_backup,
    overwrite_by_program,
    rename_folder,
)


def prepared(folder: Path) -> tuple[Path, str]:
    """A store with a session, a backup of it, another store and another program's file."""
    folder.mkdir()
    path = folder / "s.db"
    session = new_session(path)

    async def fill(store: SqliteStore) -> None:
        for n in range(5):
            head = (await store.session(session)).head
            await store.append(session, [user(f"before the backup {n}")], parent=head)

    in_store(path, fill)
    shutil.copy2(path, folder / "backup.db")
    in_store(path, fill)
    other_store(folder / "other.db")
    _other_program(folder / "program.db")
    return path, session


def entries_in(path: Path) -> set[str]:
    async def read(store: SqliteStore) -> set[str]:
        sessions = await store.sessions()
        return {entry.id for each in sessions for entry in await store.tree(each.id)}

    return in_store(path, read)


def saved_file(told: str) -> Path:
    """The file that an error names."""
    return Path(next(word for word in told.split() if ".saved-" in word).rstrip(";"))


def trial(folder: Path, disaster: Callable[[Path], None]) -> None:
    path, session = prepared(folder)
    before = entries_in(path)
    child = Child("append", path, session)
    child.wait_for("ok", random.choice((1, 3, 30, 500)))
    in_place = {
        name: (folder / name).read_bytes() for name in ("other.db", "program.db", "backup.db")
    }
    disaster(path)
    facts = child.reap()
    assert child.process.returncode == 3, (child.errors, facts[-1:])
    (error,) = child.said("error")
    assert error["kind"] == "StoreReplaced", error
    told = error["text"]
    found = set[str]()
    if disaster is rename_folder:
        assert "move both back" in told, told
        found = entries_in(folder.with_name("renamed") / "s.db")
    elif disaster not in (overwrite_by_backup, overwrite_by_program):
        found = entries_in(saved_file(told))
    else:  # what the journal holds; the rest was overwritten
        if disaster is overwrite_by_program:
            assert path.read_bytes() == in_place["program.db"]
            path.unlink()
        repair_store(path)
        for file in (path, *folder.glob("s.db.saved-*")):
            found |= entries_in(file)
    lost = set(acknowledged(facts)) - found
    assert not lost, (len(lost), told)
    if disaster not in (overwrite_by_backup, overwrite_by_program):
        assert before <= found
    if disaster in (replace_by_program, replace_by_store, replace_by_backup):
        name = {"store": "other.db", "program": "program.db"}.get(
            disaster.__name__.rpartition("_")[2], "backup.db"
        )
        assert path.read_bytes() == in_place[name]


@pytest.mark.parametrize("disaster", DISASTERS, ids=lambda each: each.__name__)
def test_nothing_acknowledged_is_lost_when_an_open_store_is_replaced(
    tmp_path: Path, disaster: Callable[[Path], None]
) -> None:
    trial(tmp_path / "0", disaster)


@pytest.mark.parametrize(
    "disaster",
    [delete, move, replace_by_store, replace_by_program, replace_by_backup, overwrite_by_backup],
    ids=lambda each: each.__name__,
)
def test_a_killed_writers_journal_is_not_applied_to_another_file(
    tmp_path: Path, disaster: Callable[[Path], None]
) -> None:
    path, session = prepared(tmp_path / "0")
    child = Child("append", path, session)
    child.wait_for("ok", 3)
    known = set(acknowledged(child.kill()))
    disaster(path)
    expected = path.read_bytes() if path.exists() else b""
    if disaster is replace_by_program:
        with pytest.raises(CannotOpen, match="another program's database"):
            in_store(path, warnings_of)
        assert path.read_bytes() == expected
        with sqlite3.connect(path) as db:
            assert list(db.execute("SELECT word FROM theirs")) == [("kept",)]
        db.close()
        return
    (warning,) = in_store(path, warnings_of)
    assert "it was not applied but kept as s.db-wal.orphaned-" in warning
    assert not known & entries_in(path)
    assert not examine_store(path).healthy
    (repaired,) = repair_store(path).findings
    assert "recollect store copy" in repaired.repaired
    (saved,) = path.parent.glob("s.db.saved-*")
    assert known <= entries_in(saved)
    assert examine_store(path).healthy


async def warnings_of(store: SqliteStore) -> list[str]:
    return store.warnings


def test_an_ordinary_crash_leaves_a_journal_that_is_applied(tmp_path: Path) -> None:
    path, session = prepared(tmp_path / "0")
    for _ in range(3):
        child = Child("append", path, session)
        child.wait_for("ok", 40)
        known = set(acknowledged(child.kill()))
        copy = copy_store(path, tmp_path / "copy" / "s.db")
        assert in_store(copy, warnings_of) == in_store(path, warnings_of) == []
        assert known <= entries_in(path) & entries_in(copy)


def test_a_new_store_and_the_writer_of_the_old_one_do_not_disturb_each_other(
    tmp_path: Path,
) -> None:
    path, session = prepared(tmp_path / "0")
    old = Child("serve", path, session)
    old.wait_for("ready")
    head = in_store(path, lambda store: head_of(store, session))
    order = {"session": session, "text": "one", "parent": head}
    old.tell(json.dumps(order))
    first = old.wait_for("ok")
    replace_by_store(path)
    known = entries_in(path)
    new = Child("append", path, new_session(path))
    new.wait_for("ok", 20)
    old.tell(json.dumps(order | {"parent": first["head"]}))
    old.wait_for("error")
    old.reap()
    new.wait_for("ok", 40)
    written = set(acknowledged(new.kill()))
    assert known | written <= entries_in(path)
    assert first["head"] not in entries_in(path)
    assert [finding.place for finding in repair_store(path).findings] == ["journal"]
    assert examine_store(path).healthy


async def head_of(store: SqliteStore, session: str) -> str | None:
    return (await store.session(session)).head


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_filesystem_mounted_over_the_folder_is_noticed(tmp_path: Path, kind: str) -> None:
    """In a mount namespace of its own, so that nothing stays mounted."""
    path, session = prepared(tmp_path / "0")
    (tmp_path / "over").mkdir()
    what = "tmpfs" if kind == "tmpfs" else tmp_path / "over"
    mount = f"mount {'-t tmpfs' if kind == 'tmpfs' else '--bind'} {what} {path.parent}"
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("no mount namespaces here")
    (tmp_path / "home").mkdir()
    child = Child(
        "append",
        path,
        session,
        before=["unshare", "-m"],
        env=os.environ | {"HOME": f"{tmp_path}/home"},
    )
    child.wait_for("ok", 5)
    inside = ["nsenter", "-m", "-t", str(child.process.pid), "sh", "-c", mount]
    subprocess.run(inside, check=True)
    facts = child.reap()
    (error,) = child.said("error")
    assert error["kind"] == "StoreReplaced"
    assert set(acknowledged(facts)) <= entries_in(path)  # the files below the mount are whole


@pytest.mark.long
@pytest.mark.parametrize("disaster", DISASTERS, ids=lambda each: each.__name__)
def test_two_hundred_disasters_of_each_kind(
    tmp_path: Path, disaster: Callable[[Path], None]
) -> None:
    for number in range(200):
        trial(tmp_path / str(number), disaster)
        for folder in (tmp_path / str(number), tmp_path / "renamed"):
            shutil.rmtree(folder, ignore_errors=True)
    note_figures("replaced", {disaster.__name__: 200})
