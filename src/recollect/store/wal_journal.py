"""Notices when SQLite throws away part of a damaged journal, which it does without a word.

After a crash the newest commits are only in the write-ahead log. Its frames are chained by
checksums: at the first frame that does not fit, SQLite stops and forgets all that follow. So the
frames that were committed are counted from the file before opening, and compared with what SQLite
kept. If some are missing, the journal is copied aside before anything can overwrite it.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from pathlib import Path
from typing import BinaryIO

import apsw

_HEADER, _FRAME = 32, 24
_MAGIC = (0x377F0682, 0x377F0683)


def committed_frames(path: Path) -> int:
    """How many frames the journal holds up to its last commit, judged by their salts alone."""
    try:
        with journal_path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            return _count(file.read(_HEADER), file, size)
    except OSError:
        return 0


def _count(header: bytes, file: BinaryIO, size: int) -> int:
    if len(header) < _HEADER:
        return 0
    magic, _, page, _, *_ = struct.unpack(">8I", header)
    if magic not in _MAGIC or not 512 <= page <= 65_536:
        page = 4_096  # a damaged header hides every frame; ours have this size
    salts = header[16:24]
    found = last = number = 0
    seen: dict[bytes, int] = {}
    while True:
        frame = file.read(_FRAME)
        # a writer that is killed between a frame's head and its page leaves a head alone
        if len(frame) < _FRAME or file.tell() + page > size:
            break
        number += 1
        if int.from_bytes(frame[4:8], "big"):  # the size of the database after a commit
            seen[frame[8:16]] = number
        file.seek(page, os.SEEK_CUR)
    found = seen.get(salts, 0)
    last = max(seen.values(), default=0)
    return found if magic in _MAGIC and _header_fits(header) else last


def _header_fits(header: bytes) -> bool:
    order = ">" if header[3] & 1 else "<"
    words = struct.unpack(f"{order}6I", header[:24])
    first = second = 0
    for a, b in zip(words[::2], words[1::2], strict=True):
        first = (first + a + second) & 0xFFFFFFFF
        second = (second + b + first) & 0xFFFFFFFF
    return struct.unpack(">2I", header[24:32]) == (first, second)


def frames_in_use(db: apsw.Connection) -> int:
    """How many frames SQLite itself sees, without moving any."""
    return int(db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0])


def report_lost_frames(path: Path, db: apsw.Connection, expected: int) -> list[str]:
    """A warning where committed frames are gone, after copying the journal aside."""
    for _ in range(20):
        kept = frames_in_use(db)
        if kept >= expected or committed_frames(path) < expected:
            return []
        time.sleep(0.02)  # another process may be in the middle of its commit
    aside = journal_path(path).with_name(f"{path.name}-wal.damaged-{time.time_ns()}")
    from shutil import copyfile

    copyfile(journal_path(path), aside)
    aside.chmod(0o600)
    with contextlib.suppress(apsw.Error):  # so that the next open does not find the same again
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    warning = (
        f"the journal of {path.name} was damaged: {expected - kept} of {expected} frames could "
        f"not be replayed, so the newest entries may be missing. It was copied to {aside.name}; "
        "run `recollect doctor`"
    )
    return [warning]


def journal_path(path: Path) -> Path:
    return path.with_name(path.name + "-wal")
