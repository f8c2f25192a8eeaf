"""Which terminal works in a session: one at a time holds the session's claim.

A claim is a lock on a small file in the data directory. The kernel releases it when the holder
ends, however it ends, so a killed terminal never keeps a session. A claim stops nobody who does not
ask for it: other commands may append, and `HeadMoved` covers that. Of a store that several machines
share, it covers the terminals of one machine. Where no file can be locked, the claim is granted.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from recollect.settings import data_directory, make_private_folder
from recollect.store.ids import is_id, now

FOLDER = "claims"  # below the data directory
_MAX_CONTENT = 4_096  # bytes
_ATTEMPTS, _PAUSE = 5, 0.02  # a terminal that only looks holds the lock for a moment


class SessionHolder(msgspec.Struct, frozen=True):
    """The terminal that a session is open in; empty fields are not known."""

    pid: int = 0
    host: str = ""
    tty: str = ""
    since: int = 0  # milliseconds

    @property
    def is_stopped(self) -> bool:
        """Whether it was suspended, with Ctrl-Z for instance: it holds on and does nothing."""
        if not self.pid or self.host != socket.gethostname():
            return False
        try:
            return bool(psutil.Process(self.pid).status() == psutil.STATUS_STOPPED)
        except psutil.Error:
            return False


class SessionClaim:
    """Held until `close`; it goes along when the session goes on in a fork."""

    def __init__(self, address: str, session: str, lock: int | None) -> None:
        self.address, self.session, self._lock = address, session, lock

    async def follow(self, session: str) -> None:
        """The work goes on in another session."""
        if session == self.session:
            return
        self.close()
        self.session = session
        lock = await _try_lock(_claim_file(self.address, session))
        self._lock = lock if isinstance(lock, int) else None

    def close(self) -> None:
        if self._lock is not None:
            file = _claim_file(self.address, self.session)
            with suppress(OSError):  # while it is locked, nobody else can mean this file
                if _is_at(file, self._lock):
                    file.unlink()
            os.close(self._lock)
            self._lock = None


async def claim_session(address: str, session: str) -> SessionClaim | SessionHolder:
    """The claim on a session of the store at this address, or who has it."""
    lock = await _try_lock(_claim_file(address, session))
    if isinstance(lock, SessionHolder):
        return lock
    return SessionClaim(address, session, lock)


def find_holder(address: str, session: str) -> SessionHolder | None:
    """Who has the claim on a session, if anybody has."""
    try:
        lock = _open(_claim_file(address, session), os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_holder(lock)
    except OSError:
        return None
    finally:
        os.close(lock)
    return None


async def _try_lock(file: Path) -> int | SessionHolder | None:
    """The locked file, or who has locked it; None where files cannot be locked."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            locked = _lock_file(file)
        except OSError:
            return None
        if isinstance(locked, SessionHolder) and attempt < _ATTEMPTS:
            await asyncio.sleep(_PAUSE)
            continue
        return locked
    return None


def _lock_file(file: Path) -> int | SessionHolder:
    make_private_folder(file.parent)
    while True:
        lock = _open(file, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _read_holder(lock)
            os.close(lock)
            return holder
        except OSError:
            os.close(lock)
            raise
        if _is_at(file, lock):
            _write_holder(lock)
            return lock
        os.close(lock)  # its holder left, and removed the file, after we had opened it


def _open(file: Path, flags: int) -> int:
    return os.open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _is_at(file: Path, lock: int) -> bool:
    try:
        there, here = file.lstat(), os.fstat(lock)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _write_holder(lock: int) -> None:
    own = SessionHolder(os.getpid(), socket.gethostname(), _terminal_name(), now())
    with suppress(OSError):  # a full disk: the lock holds all the same
        os.ftruncate(lock, 0)
        os.pwrite(lock, msgspec.json.encode(own), 0)


def _read_holder(lock: int) -> SessionHolder:
    try:
        return msgspec.json.decode(os.pread(lock, _MAX_CONTENT, 0), type=SessionHolder)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OSError):
        return SessionHolder()


def _terminal_name() -> str:
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError, AttributeError):
            return os.ttyname(stream.fileno())  # type: ignore[union-attr] # caught above
    return ""


def _claim_file(address: str, session: str) -> Path:
    return session_file(FOLDER, address, session)


def session_file(folder: str, address: str, session: str) -> Path:
    """Below the data directory, one for each session of each store; a file's path counts without
    links."""
    store = address if "://" in address else os.path.realpath(address)
    digest = hashlib.blake2b(store.encode("utf-8", "surrogateescape"), digest_size=12).hexdigest()
    name = session if is_id(session) else hashlib.blake2b(session.encode()).hexdigest()[:32]
    return data_directory() / folder / f"{digest}-{name}"
