"""Where a store's file may be, and how it is opened: private, local, durable.

Directories that are made here get mode 0700, files 0600. A network filesystem is refused, because
SQLite's locks and its shared memory do not hold there.
"""

from __future__ import annotations

import os
from pathlib import Path

import apsw

from recollect.errors import CannotOpen, Damaged
from recollect.store import schema
from recollect.store.commit import PATIENCE

SAFE_SQLITE = (3, 51, 3)  # before this, two connections could corrupt a WAL they both reset
_NETWORK = {
    "9p",
    "afs",
    "ceph",
    "cifs",
    "davfs",
    "fuse.sshfs",
    "glusterfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "smb3",
    "smbfs",
}


def connect(path: Path) -> apsw.Connection:
    """A connection with our settings. The file must exist; `prepare` sees to that."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.set_busy_timeout(int(PATIENCE * 1000))
        db.pragma("journal_mode", "wal")
        db.pragma("synchronous", "full")
        db.pragma("foreign_keys", "on")
        db.pragma("wal_autocheckpoint", 2_000)
        db.pragma("journal_size_limit", 64 * 1024 * 1024)
        db.pragma("cache_size", -16_000)
        return db
    except (apsw.NotADBError, apsw.CorruptError) as error:
        raise Damaged(f"{path} is not a readable database ({error})") from error
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise CannotOpen(
            str(path), "the file or its directory is read-only; grant access or set RECOLLECT_HOME"
        ) from error
    except apsw.FullError as error:
        raise CannotOpen(str(path), "the disk is full; make room and try again") from error
    except apsw.Error as error:
        raise CannotOpen(str(path), str(error)) from error


def prepare(path: Path) -> None:
    """Make the directory and an empty private file where there is none yet."""
    if _number(SAFE_SQLITE) > apsw.SQLITE_VERSION_NUMBER:
        raise CannotOpen(str(path), f"SQLite {apsw.sqlite_lib_version()} is unsafe; upgrade apsw")
    try:
        for missing in reversed([p for p in (path.parent, *path.parents) if not p.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        refuse_network(path)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        why = f"{error.strerror or error}; grant access, make room, or set RECOLLECT_HOME"
        raise CannotOpen(str(path), why) from error


def refuse_network(path: Path) -> None:
    kind = filesystem(path.parent)
    if kind in _NETWORK:
        raise CannotOpen(
            str(path),
            f"it lies on a network filesystem ({kind}), where SQLite's locks do not hold; "
            "set RECOLLECT_HOME to a local directory",
        )


def filesystem(directory: Path) -> str:
    """The type of the filesystem a directory is on; empty where the system does not tell."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    device = os.stat(directory).st_dev  # noqa: PTH116 - the number is what mountinfo lists
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) > 2 and fields[2] == wanted and after:
            return after.split()[0]
    return ""


def open_file(path: Path) -> apsw.Connection:
    """Open or make a store's file in the current format."""
    prepare(path)
    db = connect(path)
    try:
        schema.migrate(db, str(path))
    except apsw.Error as error:
        db.close()
        if isinstance(error, apsw.CorruptError | apsw.NotADBError):
            raise Damaged(f"{path} is damaged ({error})") from error
        raise CannotOpen(str(path), str(error)) from error
    except BaseException:
        db.close()
        raise
    return db


def _number(version: tuple[int, int, int]) -> int:
    return version[0] * 1_000_000 + version[1] * 1_000 + version[2]
