"""Reads and writes files without leaving the given folders.

`read_inside` resolves links first, refuses paths that end outside the folders, and then opens the
resolved path component by component without following links, so that a link swapped in meanwhile
cannot lead elsewhere. It reads only regular files up to a limit, and never blocks.
`replace_file` writes all or nothing; a new file gets mode 0600.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from recollect.errors import CannotWrite
from recollect.settings import make_private_folder
from recollect.workspace.text_format import decode_text


class FileContent(msgspec.Struct, frozen=True):
    path: Path  # with all links resolved
    data: bytes
    size: int  # of the whole file; `data` may be its beginning
    writable_by_others: bool = False  # another user may write to it
    identity: tuple[int, int] = (0, 0)  # device and inode; hard links have the same


RefusalKind: TypeAlias = Literal[
    "missing", "outside", "ignored", "folder", "special", "large", "full", "binary", "other"
]


class ReadRefused(msgspec.Struct, frozen=True):
    """Why a file is not read: a phrase to show to the user."""

    why: str
    kind: RefusalKind = "other"  # what a remedy depends on


_BINARY = getattr(os, "O_BINARY", 0)  # otherwise Windows translates line ends
_FLAGS = os.O_RDONLY | _BINARY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_OPENS_BY_FOLDER = os.open in os.supports_dir_fd


def resolve_inside(path: Path, roots: Iterable[Path]) -> tuple[Path, Path] | ReadRefused:
    """The root that contains the path, and the path, both with links resolved."""
    try:
        real = path.resolve(strict=True)
    except FileNotFoundError:
        return ReadRefused("there is no such file", "missing")
    except (OSError, RuntimeError, ValueError) as error:
        return ReadRefused(_why(error))
    for root in roots:
        with suppress(OSError, RuntimeError, ValueError):
            base = root.resolve(strict=True)
            if real.is_relative_to(base):
                return base, real
    return ReadRefused("it is outside the folders that may be read", "outside")


def read_inside(
    path: Path, roots: Iterable[Path], limit: int, *, partial: bool = False
) -> FileContent | ReadRefused:
    """A regular file in one of the folders, of at most `limit` bytes; if `partial`, the first ones
    of a larger file."""
    place = resolve_inside(path, roots)
    if isinstance(place, ReadRefused):
        return place
    base, real = place
    try:
        with open(real, "rb", opener=lambda *_: _open(base, real)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return ReadRefused("it is not a regular file", "special")
            if status.st_size > limit and not partial:
                size = f"it has {status.st_size:,} bytes, the limit is {limit:,}"
                return ReadRefused(size, "large")
            data, identity = file.read(limit), (status.st_dev, status.st_ino)
            return FileContent(real, data, status.st_size, _is_shared(status), identity)
    except IsADirectoryError:
        return ReadRefused("it is a folder", "folder")
    except OSError as error:
        return ReadRefused(_why(error))


def _is_shared(status: os.stat_result) -> bool:
    if os.name != "posix":
        return False
    return bool(status.st_mode & 0o022) or status.st_uid not in (os.geteuid(), 0)


def _open(base: Path, real: Path) -> int:
    if not _OPENS_BY_FOLDER:
        return os.open(real, _FLAGS | _NO_LINK)
    names = real.relative_to(base).parts
    at = os.open(base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, name in enumerate(names, 1):
        last = number == len(names)
        flags = _FLAGS | _NO_LINK | (0 if last else os.O_DIRECTORY)
        try:
            below = os.open(name, flags, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return "its name is not valid" if isinstance(error, ValueError) else "its links form a loop"


def resolve_named(folder: Path, named: str) -> Path:
    """The path that a text names, relative to a folder; `~/` is the user's home."""
    if named.startswith("~/"):
        with suppress(RuntimeError):
            return Path.home() / named[2:]
    return folder / named


def resolve_or_keep(path: Path) -> Path:
    """The path with links resolved; as it is if that fails."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def decode_content(found: FileContent) -> str | ReadRefused:
    """The text of a file, with LF line breaks; bytes that are not text are replaced."""
    text = decode_text(found.data)
    if text is None:
        return ReadRefused(f"it is binary ({found.size:,} bytes)", "binary")
    return text.replace("\r\n", "\n")


def replace_file(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write all or nothing; an existing file keeps its mode unless one is given.

    A missing folder is created. `CannotWrite` says why nothing was written.
    """
    temporary = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.new")
    try:
        make_private_folder(path.parent)
        if mode is None:
            mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o600
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY | _NO_LINK
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise CannotWrite(str(path), _why(error)) from error
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    # if the folder cannot be synced, the file still is; only the rename may be lost
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
