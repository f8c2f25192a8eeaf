"""Detects frames of a damaged journal that SQLite drops silently.

After a crash the newest commits are only in the write-ahead log. Its frames are chained by
checksums: at the first frame that does not match, SQLite stops and drops the rest. So we count the
committed frames in the file before opening it and compare that with the frames SQLite kept. If some
are missing, the journal is copied before anything can overwrite it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import time
from pathlib import Path
from typing import BinaryIO, NamedTuple

import apsw

from recollect.store.sql_schema import MARK_BYTES

_HEADER, _FRAME = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)


def committed_frames(path: Path) -> int:
    """How many frames the journal has up to its last commit, judged by their salts alone."""
    try:
        with journal_path(path).open("rb") as file:
            return _count(file, os.fstat(file.fileno()).st_size)
    except OSError:
        return 0


def _count(file: BinaryIO, size: int) -> int:
    header = file.read(_HEADER)
    if len(header) < _HEADER:
        return 0
    magic, _, page, _, *_ = struct.unpack(">8I", header)
    if magic not in _MAGIC or not 512 <= page <= 65_536:
        page = 4_096  # a damaged header hides every frame; ours have this size
    number = 0
    commits: dict[bytes, int] = {}  # by salts: the number of the last frame that ends a commit
    while True:
        frame = file.read(_FRAME)
        # a writer killed between a frame's header and its page leaves only the header
        if len(frame) < _FRAME or file.tell() + page > size:
            break
        number += 1
        if int.from_bytes(frame[4:8], "big"):  # the size of the database after a commit
            commits[frame[8:16]] = number
        file.seek(page, os.SEEK_CUR)
    if magic in _MAGIC and _header_is_valid(header):
        return commits.get(header[16:24], 0)
    return max(commits.values(), default=0)


class JournalPages(NamedTuple):
    """What the committed frames of a journal hold, as far as it tells whose they are."""

    committed: int
    last_bytes: tuple[bytes, ...]  # of each page, in order
    first_page: bytes  # its beginning, in its newest version; empty if the journal has none


def read_journal_pages(path: Path) -> JournalPages | None:
    """None if there is no journal, or none with an intact header."""
    try:
        with journal_path(path).open("rb") as file:
            header = file.read(_HEADER)
            if len(header) < _HEADER or not _header_is_valid(header):
                return None
            size = int.from_bytes(header[8:12], "big")
            return _read_pages(file, 65_536 if size == 1 else size, header[16:24])
    except OSError:
        return None


def _read_pages(file: BinaryIO, size: int, salts: bytes) -> JournalPages:
    last, first_page, committed, number = [], b"", 0, 0
    at = _HEADER
    while True:
        file.seek(at)
        frame = file.read(_FRAME)
        if len(frame) < _FRAME or frame[8:16] != salts:
            break
        file.seek(at + _FRAME + size - MARK_BYTES)
        last.append(file.read(MARK_BYTES))
        if len(last[-1]) < MARK_BYTES:
            break
        number += 1
        if frame[:4] == b"\0\0\0\1":
            file.seek(at + _FRAME)
            first_page = file.read(100)
        committed = number if frame[4:8] != b"\0\0\0\0" else committed
        at += _FRAME + size
    return JournalPages(committed, tuple(last[:committed]), first_page)


def _header_is_valid(header: bytes) -> bool:
    order = ">" if header[3] & 1 else "<"
    words = struct.unpack(f"{order}6I", header[:24])
    first = second = 0
    for a, b in zip(words[::2], words[1::2], strict=True):
        first = (first + a + second) & 0xFFFFFFFF
        second = (second + b + first) & 0xFFFFFFFF
    return struct.unpack(">2I", header[24:32]) == (first, second)


def frames_in_use(db: apsw.Connection) -> int:
    """How many frames SQLite itself sees; checkpoints none."""
    return int(db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])


def report_lost_frames(path: Path, db: apsw.Connection, expected: int) -> list[str]:
    """A warning if committed frames are lost; the journal is copied first."""
    for _ in range(20):
        kept = frames_in_use(db)
        if kept >= expected or committed_frames(path) < expected:
            return []
        time.sleep(0.02)  # another process may be in the middle of its commit
    aside = journal_path(path).with_name(f"{path.name}-wal.damaged-{time.time_ns()}")
    shutil.copyfile(journal_path(path), aside)
    aside.chmod(0o600)
    with contextlib.suppress(apsw.Error):  # so that the next open does not warn again
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    warning = (
        f"the journal of {path.name} was damaged: {expected - kept} of {expected} frames could "
        f"not be replayed, so the newest entries may be missing. It was copied to {aside.name}; "
        "run `recollect doctor`"
    )
    return [warning]


def journal_path(path: Path) -> Path:
    return path.with_name(path.name + "-wal")
