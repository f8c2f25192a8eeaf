"""Opens and creates a store's file: private, on a local filesystem, durable.

New directories get mode 0700, files 0600. A network filesystem is refused, because SQLite's locks
and shared memory do not work there.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from pathlib import Path

import apsw

from recollect.errors import CannotOpen, Damaged, RecollectError
from recollect.settings import make_private_folder
from recollect.store import sql_schema
from recollect.store.durable_files import publish_file, sync_directory
from recollect.store.group_commit import BUSY_TIMEOUT
from recollect.store.ids import new_id

_PRAGMAS: dict[str, str | int] = {
    "journal_mode": "wal",
    "synchronous": "full",
    "foreign_keys": "on",
    "wal_autocheckpoint": 8_000,  # rarely reached: the store checkpoints earlier, in the background
    "journal_size_limit": 64 * 1024 * 1024,
    "cache_size": -16_000,
}
ABANDONED_AFTER = 3_600  # seconds
SAFE_SQLITE = 3_051_003  # older ones can corrupt a WAL that two connections reset
_NETWORK = {"9p", "afs", "ceph", "cifs", "davfs", "fuse.sshfs", "glusterfs", "lustre"} | {
    *("ncpfs", "nfs", "nfs4", "smb3", "smbfs")
}


def connect_to_store(path: Path, *, migrate: bool = False) -> apsw.Connection:
    """Connect to an existing store, with our settings; `migrate` to the current format."""
    db: apsw.Connection | None = None
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # until we know it is ours
        db.set_busy_timeout(int(BUSY_TIMEOUT * 1000))
        sql_schema.refuse_foreign_file(db, str(path))
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        for name, value in _PRAGMAS.items():
            db.pragma(name, value)
        if migrate:
            sql_schema.migrate(db)
    except BaseException as error:
        if db is not None:
            db.close()
        if isinstance(error, apsw.Error):
            raise _explain(error, path) from error
        raise
    return db


def _explain(error: apsw.Error, path: Path) -> RecollectError:
    if isinstance(error, apsw.NotADBError | apsw.CorruptError):
        return Damaged(f"{path} is not a readable database ({error})")
    why = str(error)
    if isinstance(error, apsw.ReadOnlyError | apsw.CantOpenError):
        why = "the file or its directory is read-only; grant access or set RECOLLECT_HOME"
    elif isinstance(error, apsw.FullError):
        why = "the disk is full; free space and try again"
    return CannotOpen(str(path), why)


def create_database(path: Path) -> None:
    """Build a new store under a temporary name, then link it: it appears complete or not at all."""
    if apsw.SQLITE_VERSION_NUMBER < SAFE_SQLITE:
        raise CannotOpen(str(path), f"SQLite {apsw.sqlite_lib_version()} is unsafe; upgrade apsw")
    built = path.with_name(f".{path.name}.{new_id()}")
    for old in path.parent.glob(f".{path.name}.*"):  # of a process that died while building one
        with suppress(FileNotFoundError):  # another process has just finished its own
            if time.time() - old.stat().st_mtime > ABANDONED_AFTER:
                old.unlink()
    try:
        make_private_folder(path.parent)
        refuse_network_filesystem(path)
        os.close(os.open(built, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        try:
            _build(built)
            if publish_file(built, path):  # unless another process was faster
                sync_directory(path.parent)
        finally:
            built.unlink(missing_ok=True)
    except OSError as error:
        why = f"{error.strerror or error}; grant access, free space, or set RECOLLECT_HOME"
        raise CannotOpen(str(path), why) from error
    except apsw.Error as error:
        raise _explain(error, path) from error


def _build(path: Path) -> None:
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)) as db:
        sql_schema.migrate(db)
        db.pragma("journal_mode", "wal")


def refuse_special_files(path: Path) -> None:
    """A pipe or a device would keep whoever opens it waiting."""
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise CannotOpen(str(file), "it is not a file but a pipe, a socket or a device")


def refuse_network_filesystem(path: Path) -> None:
    kind = filesystem_type(path.parent)
    if kind in _NETWORK:
        raise CannotOpen(
            str(path),
            f"it is on a network filesystem ({kind}), where SQLite's locks do not work; "
            "set RECOLLECT_HOME to a local directory",
        )


def filesystem_type(directory: Path) -> str:
    """The type of a directory's filesystem; empty if the system does not say."""
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


def open_database(path: Path) -> apsw.Connection:
    """Open a store's file, or create it, in the current format."""
    if not path.exists():
        create_database(path)
    return connect_to_store(path, migrate=True)
