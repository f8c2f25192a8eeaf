"""The one file of a mirrored session, and the claim that says which file it is.

Guarantees: a session keeps its file. A claim beside it names the file and the content that was last
written; so a mirror replaces only what a mirror of the same session wrote, byte for byte. Any other
file stays as it is, and the mirror takes another name. A state that was read earlier never replaces
a later one. A crash at any step leaves a whole file that is still the session's.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from recollect.entries import Entry
from recollect.settings import make_private_folder
from recollect.store.contract import SessionInfo
from recollect.store.durable_files import publish_file, sync_directory, write_durably
from recollect.store.ids import derived_id
from recollect.transcripts.session_file_format import SessionFileFormat

LOCK_TIMEOUT_SECONDS = 10.0  # while another process writes the same session's file
_CLAIM_SIZE = 512  # bytes, always: one sector is overwritten whole or not at all
_NAME_LIMIT = 1_000
_FILE_NAME = re.compile(r"session[-_][A-Za-z0-9_-]{1,220}\.json")


class WrittenMirror(NamedTuple):
    name: str
    abandoned: str = ""  # the session's earlier file, which somebody else has changed


class _Fingerprint(NamedTuple):
    """Identifies a content."""

    size: int
    digest: str


_FOREIGN = _Fingerprint(-1, "")


class _FileClaim(msgspec.Struct, frozen=True):
    """Which file is a session's. `wrote`: what it may hold, before and after the newest write,
    because a crash can come between the claim and the file."""

    file: str = ""
    as_of: int = 0
    wrote: tuple[_Fingerprint, ...] = ()


def write_mirror_file(
    folder: Path, writer: SessionFileFormat, session: SessionInfo, path: Sequence[Entry], as_of: int
) -> WrittenMirror:
    """`as_of`: nanoseconds since 1970, before anything was read."""
    _, names, data = writer.compose(session, path)
    make_private_folder(folder)
    own = folder / f".{derived_id('mirror', writer.records.name, session.id)}"
    temporary = own.with_suffix(".tmp")
    with _locked(own.with_suffix(".claim")) as lock:
        temporary.unlink(missing_ok=True)  # left by a crash; it may be a second name of the file
        claim = _read_claim(lock)
        present = _fingerprint(folder / claim.file, claim.wrote) if claim.file else None
        # a claim from the future comes from a clock that was wrong
        if as_of < claim.as_of <= time.time_ns() and present == claim.wrote[-1]:
            return WrittenMirror(claim.file)
        new = _Fingerprint(len(data), _digest(data))
        if present == new:
            _write_claim(lock, msgspec.structs.replace(claim, as_of=as_of))
            return WrittenMirror(claim.file)
        try:
            write_durably(temporary, data)
            if present is not None and present in claim.wrote:
                _write_claim(lock, _FileClaim(claim.file, as_of, (present, new)))
                temporary.replace(folder / claim.file)
                name = claim.file
            else:
                candidates = itertools.chain([claim.file] if claim.file else [], _numbered(names))
                claims = (_FileClaim(each, as_of, (new,)) for each in candidates)
                name = _take_free_name(lock, temporary, claims)
        finally:
            temporary.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # some filesystems cannot
            sync_directory(folder)
    return WrittenMirror(name, claim.file if name != claim.file else "")


def _numbered(names: Sequence[str]) -> Iterator[str]:
    yield from names
    for number in range(2, _NAME_LIMIT):
        yield f"{names[-1].removesuffix('.json')}-{number}.json"


def _take_free_name(lock: int, temporary: Path, claims: Iterable[_FileClaim]) -> str:
    """The first of these names that no file has, which the temporary file gets."""
    for claim in claims:
        path = temporary.with_name(claim.file)
        if os.path.lexists(path):
            continue
        _write_claim(lock, claim)
        if publish_file(temporary, path):
            return claim.file
    raise FileExistsError(errno.EEXIST, "every name that it could have is taken")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    """The claim's file, for one process at a time; the lock ends with its holder."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    lock, until = os.open(path, flags, 0o600), time.monotonic() + LOCK_TIMEOUT_SECONDS
    try:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > until:
                seconds = f"{LOCK_TIMEOUT_SECONDS:g} seconds"
                raise TimeoutError(f"another process has been writing it for {seconds}")
            time.sleep(0.01)
        yield lock
    finally:
        os.close(lock)


def _read_claim(lock: int) -> _FileClaim:
    try:
        claim = msgspec.json.decode(os.pread(lock, _CLAIM_SIZE, 0), type=_FileClaim)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _FileClaim()  # new, or not one of ours: then no file is
    return claim if _FILE_NAME.fullmatch(claim.file) and claim.wrote else _FileClaim()


def _write_claim(lock: int, claim: _FileClaim) -> None:
    data = msgspec.json.encode(claim).ljust(_CLAIM_SIZE)
    if len(data) > _CLAIM_SIZE or os.pwrite(lock, data, 0) < len(data):
        raise OSError(errno.ENOSPC, "the claim on a mirror's file was not written")
    os.fsync(lock)


def _fingerprint(path: Path, expected: Iterable[_Fingerprint]) -> _Fingerprint | None:
    """Of the file at `path`; only read if it has one of the expected sizes, so reading ends."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:  # a link, a socket, something that may not be read
        return _FOREIGN
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size not in {e.size for e in expected}:
            return _FOREIGN
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return _Fingerprint(about.st_size, _digest(stream.read(about.st_size)))
    finally:
        os.close(handle)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
