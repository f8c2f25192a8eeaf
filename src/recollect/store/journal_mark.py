"""Binds a write-ahead log to the database file that it belongs to.

SQLite applies whatever journal it finds beside a file. So the file carries a mark (table `journal`,
one row): a random name, a counter and a checksum. A transaction that finds the file's mark to be
the newest one counts on: the first transaction of every journal therefore contains the mark that
follows the one in the file. A journal is applied only to a file whose mark is among its own, or
just before its first; one flipped bit in either does not make it another file's. And while a store
is open, a file whose mark is neither the newest nor the one before it was overwritten by somebody
else.

The mark is read through SQLite's own file layer: closing a file that we had opened ourselves would
give up the locks that SQLite holds on it.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import apsw

from recollect.errors import Damaged
from recollect.store.durable_files import sync_directory
from recollect.store.sql_schema import (
    APPLICATION_ID,
    FORMAT,
    MARK_BYTES,
    MARKED_FORMAT,
    encode_mark,
)
from recollect.store.wal_journal import JournalPages, journal_path, read_journal_pages

_PAGE = 4_096
_NAME, _COUNT = slice(4, 12), slice(12, 16)  # of a mark
_ATTEMPTS, _PAUSE = 20, 0.02  # seconds; another process may be in the middle of a checkpoint
_ROOT = "SELECT rootpage FROM sqlite_schema WHERE name = 'journal'"
_MARK = "SELECT mark FROM journal"


class FileOverwritten(Exception):
    """The file of an open store no longer has the content that the store wrote."""


class JournalMark:
    """The mark of an open store: the newest one, and the one in the file."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        flags = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
        self._file = apsw.VFSFile("", db.filename, flags)
        self._at = 0
        self._newest = self._before = self._found = b""

    def advance(self) -> None:
        """Within a transaction that will write: count on, if the file has the newest mark."""
        if self._newest and self._read_file() == self._before:
            return  # as it usually is
        if not self.is_in_file():
            raise FileOverwritten
        if self._found == self._newest:
            self._remember(_following(self._newest, 1))
            self._db.execute("UPDATE journal SET mark = ?", (self._newest,))

    def is_in_file(self) -> bool:
        """Whether the file has the newest mark or the one before it. If not, look again at what the
        newest is: another process may have counted on, or be in the middle of a checkpoint."""
        for attempt in range(_ATTEMPTS):
            if self._newest:
                self._found = self._read_file()
                if self._found in (self._before, self._newest) or self._is_being_added():
                    return True
            if attempt > 1:
                time.sleep(_PAUSE / 10)
            self._load()
        return False

    def forget(self) -> None:
        """A transaction was rolled back, or another process has written."""
        self._newest = b""

    def close(self) -> None:
        self._file.xClose()

    def _load(self) -> None:
        root, mark = find_mark(self._db)
        # the table's only row has the last bytes of its page
        self._at = root * _PAGE - MARK_BYTES
        self._remember(mark)

    def _is_being_added(self) -> bool:
        """Whether the first mark of a file of an older format is only in the journal so far."""
        return not any(self._newest[_COUNT]) and not _is_mark(self._found)

    def _remember(self, mark: bytes) -> None:
        self._newest, self._before = mark, _following(mark, -1)

    def _read_file(self) -> bytes:
        try:
            return bytes(self._file.xRead(MARK_BYTES, self._at))
        except apsw.IOError:  # the file has become shorter
            return b""


def find_mark(db: apsw.Connection) -> tuple[int, bytes]:
    """The page that the mark is on, and the mark itself."""
    try:
        ((root,),), ((mark,),) = db.execute(_ROOT), db.execute(_MARK)
    except (apsw.SQLError, ValueError):
        mark = None
    if not _is_mark(mark):
        raise Damaged(f"the mark that binds {db.filename} and its journal is damaged")
    return int(root), mark


def _following(mark: bytes, step: int) -> bytes:
    return encode_mark(mark[_NAME], int.from_bytes(mark[_COUNT], "big") + step)


def set_aside_foreign_journal(path: Path) -> list[str]:
    """Rename a journal that does not belong to the file beside it, and return a warning.

    Its shared memory goes with it, so that a process which still has the old file open does not
    share it with those that open the new one.
    """
    for attempt in range(_ATTEMPTS):
        why = _why_foreign(path)
        if not why:
            return []
        if attempt + 1 < _ATTEMPTS and path.exists():
            time.sleep(_PAUSE)
    aside = journal_path(path).with_name(f"{path.name}-wal.orphaned-{time.time_ns()}")
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        journal_path(path).rename(aside)
        with contextlib.suppress(FileNotFoundError):
            path.with_name(f"{path.name}-shm").rename(f"{aside}.shm")
        sync_directory(path.parent)
        kept = f"it was not applied but kept as {aside.name}"
        remedy = "`recollect doctor --repair` saves the entries in it"
        return [f"the journal beside {path.name} {why}; {kept}. {remedy}"]
    return []


class _FileMark(NamedTuple):
    is_store: bool
    mark: bytes = b""  # none in a file of an older format


def _why_foreign(path: Path) -> str:
    """Why the journal does not belong to the file; empty if it does, or if nobody can tell."""
    pages = read_journal_pages(path)
    if pages is None or not pages.committed:
        return ""
    if not path.exists():
        return "belongs to a database that is gone"
    file = _read_file_mark(path)
    if file is None or _is_newer_format(pages):
        return ""
    marks = [mark for mark in pages.last_bytes if _is_mark(mark)]
    if not file.mark:
        begins_here = bool(marks) and file.is_store and not any(marks[0][_COUNT])
        return "" if begins_here or not marks else "belongs to another database"
    expected = (file.mark, _following(file.mark, 1))
    if any(_is_alike(end, mark) for end in pages.last_bytes for mark in expected):
        return ""
    same = any(mark[_NAME] == file.mark[_NAME] for mark in marks)
    return "belongs to another state of this database" if same else "belongs to another database"


def _is_mark(value: object) -> bool:
    if not isinstance(value, bytes) or len(value) != MARK_BYTES:
        return False
    return encode_mark(value[_NAME], int.from_bytes(value[_COUNT], "big")) == value


def _is_alike(found: bytes, mark: bytes) -> bool:
    """The same but for one bit, which the disk may have flipped."""
    different = int.from_bytes(found, "big") ^ int.from_bytes(mark, "big")
    return different.bit_count() <= 1


def _is_newer_format(pages: JournalPages) -> bool:
    """A newer version's journal is not ours to judge."""
    header = pages.first_page
    return len(header) >= 64 and int.from_bytes(header[60:64], "big") > FORMAT


def _read_file_mark(path: Path) -> _FileMark | None:
    """What the file alone says, without its journal; None if it cannot be read."""
    uri = f"file:{quote(os.fsencode(path.absolute()))}?immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        with contextlib.closing(apsw.Connection(uri, flags=flags)) as db:
            if not path.stat().st_size:
                return None
            is_store = int(db.pragma("application_id")) == APPLICATION_ID
            has_mark = is_store and int(db.pragma("user_version")) >= MARKED_FORMAT
            if not has_mark and not list(db.execute(_ROOT)):
                return _FileMark(is_store)
            return _FileMark(is_store, find_mark(db)[1])
    except (apsw.Error, Damaged, OSError):
        return None
