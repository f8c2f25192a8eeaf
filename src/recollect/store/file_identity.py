"""Notices that the files of an open store were deleted, moved or replaced.

SQLite goes on writing to the files that it opened, whatever happens to their names; what it writes
to a deleted file is gone when the process ends. So device and inode of the database, its journal
and its shared memory are compared with every commit, before it is acknowledged. Then everything
that the connection holds is saved to a new file, because only this process can still read it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from recollect.errors import StoreReplaced
from recollect.store.durable_files import sync_directory

_CLOCK_TICK = 100_000_000  # nanoseconds, longer than any kernel's
_Identity = tuple[int, int] | None  # device and inode; None if there is no such file


class _Loss(NamedTuple):
    """What `StoreReplaced` says."""

    why: str
    remedy: str
    saved: str = ""


class FileIdentity:
    """The files as they were when the store was opened."""

    def __init__(self, path: Path, db: apsw.Connection) -> None:
        self._path, self._db = path, db
        real = db.filename  # where `path` is a link, the journal is beside the file itself
        self._names, self._folder = (
            (str(path), f"{real}-wal", f"{real}-shm"),
            str(Path(real).parent),
        )
        self._files = self._read()
        self._settled = (0, 0, 0)  # the folder when it was last seen at rest
        self._saved: _Loss | None = None
        self._saved_version = -1

    def _read(self) -> tuple[_Identity, _Identity, _Identity]:
        database, journal, memory = map(identify, self._names)
        return database, journal, memory

    def is_unchanged(self) -> bool:
        """With every commit, so usually one look at the folder: nothing in it was deleted, moved
        or replaced since its inode changed last."""
        try:
            found = os.stat(self._folder)  # noqa: PTH116 - a Path costs more
        except OSError:
            return False
        folder = (found.st_ctime_ns, found.st_ino, found.st_dev)
        if folder == self._settled:
            return True
        if self._read() != self._files:
            return False
        # two changes within a tick of the kernel's clock have the same time
        if time.time_ns() - found.st_ctime_ns > _CLOCK_TICK:
            self._settled = folder
        return True

    @property
    def was_lost(self) -> bool:
        return self._saved is not None

    def explain_loss(self, *, overwritten: bool = False) -> StoreReplaced:
        """The error, after everything was saved that nobody else can read."""
        version = self._db.data_version()
        if self._saved is None or self._saved_version != version:
            self._saved, self._saved_version = self._save(overwritten=overwritten), version
        # a new one each time: one that is raised again grows by the trace of every raise
        return StoreReplaced(str(self._path), *self._saved)

    def _save(self, *, overwritten: bool) -> _Loss:
        why = "was overwritten in place"
        database, *journal = self._read()
        opened, *opened_journal = self._files
        now_at = _current_name(opened) if opened else ""
        if database is None:
            why = f"was moved to {now_at}" if now_at else "was deleted"
        elif database != opened:
            moved = f", and the store was moved to {now_at}" if now_at else ""
            why = f"was replaced by another file{moved}"
        elif journal != opened_journal:
            why = "lost its journal (FILE-wal or FILE-shm was deleted, moved or replaced)"
        is_whole = database != opened and identify(f"{now_at}-wal") == opened_journal[0]
        if now_at and is_whole:
            held = f"Everything acknowledged is there and in {now_at}-wal"
            return _Loss(why, f"{held}; {self._way_back(Path(now_at))}, or move both back")
        return self._save_copy(why, overwritten=overwritten)

    def _way_back(self, saved: Path) -> str:
        copy = f"`recollect store copy {shlex.quote(str(saved))} {shlex.quote(str(self._path))}`"
        return f"end the programs that have it open, then {copy} adds it to the store"

    def _save_copy(self, why: str, *, overwritten: bool) -> _Loss:
        name, failures = f"{self._path.name}.saved-{time.time_ns()}", []
        for folder in self._folders():
            saved = folder / name
            try:
                _copy_database(self._db, saved, check=overwritten)
            except (apsw.Error, OSError) as error:
                failures.append(f"{folder}: {error}")
                saved.unlink(missing_ok=True)
                continue
            held = "Everything acknowledged is in"
            if overwritten:
                held = "What could still be read is in"
            return _Loss(why, f"{held} {saved}; {self._way_back(saved)}", str(saved))
        remedy = (
            "Restore the file from a backup; the newest entries are in the journal beside it, "
            "which `recollect doctor --repair` saves"
        )
        if not overwritten:
            remedy = (
                f"What it holds could not be saved ({'; '.join(failures)}); make room and try "
                "again before this process ends"
            )
        return _Loss(why, remedy)

    def _folders(self) -> Iterator[Path]:
        """Where a copy may go: beside the store, else where people look."""
        if self._path.parent.is_dir():
            yield self._path.parent
        with contextlib.suppress(RuntimeError):
            yield Path.home()
        yield Path(tempfile.gettempdir())


def close_connections(connections: Iterable[apsw.Connection], *, checkpoint: bool) -> None:
    """The last connection to close writes the journal to the file and removes it, by its name: not
    where that name belongs to another file by now."""
    for db in connections:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(not checkpoint))
        db.close()


def identify(name: str | Path) -> _Identity:
    try:
        found = os.stat(name)  # noqa: PTH116 - called with every commit, and a Path costs more
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _current_name(identity: tuple[int, int]) -> str:
    """The present name of a file that this process has open; empty if it has none."""
    with contextlib.suppress(OSError):
        for handle in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names are all that is needed
            with contextlib.suppress(OSError):
                link = f"/proc/self/fd/{handle}"
                if identify(link) == identity:
                    name = os.readlink(link)  # noqa: PTH115 - not to be made absolute
                    return name if identify(name) == identity else ""
    return ""


def _copy_database(db: apsw.Connection, saved: Path, *, check: bool) -> None:
    os.close(os.open(saved, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    with contextlib.closing(apsw.Connection(str(saved))) as copy:
        with copy.backup("main", db, "main") as backup:
            while not backup.done:
                backup.step(1_000)
        if check and copy.pragma("quick_check") != "ok":
            raise apsw.CorruptError("the rest of the file is another one's")
    sync_directory(saved.parent)
