"""Reads and writes files inside the roots only, however a path is spelled and whatever moves.

`resolve_path` walks every path; links inside the roots are followed for reading, and nothing is
ever written through one. An opened file is checked again: it must be a regular file, still inside
the roots, not of `/proc` or `/sys`; and the descriptor that was checked is the one that is read.
Nothing here waits for a FIFO or a device. Writing is atomic and durable: a new file takes the old
one's name. Every failure is a `ToolFailed`.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import EllipsisType
from typing import NamedTuple

from recollect.tools.resolve_path import (
    FOLDER_FLAGS,
    SAFE_FLAGS,
    ResolvedPath,
    quote,
    resolve_path,
    split_path,
)
from recollect.tools.tool import ToolFailed

MAX_BYTES = 20_000_000
LIST_FLAGS = os.O_DIRECTORY | SAFE_FLAGS | os.O_RDONLY
_FILE_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
    stat.S_IFLNK: "a link",
}


class CheckedFile(NamedTuple):
    path: Path
    descriptor: int
    info: os.stat_result


class WholeFile(NamedTuple):
    """A whole file, read from one descriptor."""

    path: Path
    data: bytes
    mode: int


@contextmanager
def open_file(roots: Sequence[Path], path: str) -> Iterator[CheckedFile]:
    """Open a regular file for reading."""
    with resolve_path(roots, path) as resolved, open_resolved(resolved, roots, path) as opened:
        yield opened


@contextmanager
def open_resolved(
    resolved: ResolvedPath, roots: Sequence[Path], path: str
) -> Iterator[CheckedFile]:
    """Open a file that was resolved, unless it was moved out of the roots since."""
    _check_exists(resolved, path)
    if resolved.info is not None and not stat.S_ISREG(resolved.info.st_mode):
        raise ToolFailed(
            f"{quote(path)} is {_describe_kind(resolved.info)}, not a file; nothing was read"
        )
    with open_in_folder(resolved.parent, resolved.name) as opened:
        _check_inside(opened.descriptor, roots, path)
        yield opened._replace(path=resolved.path)


@contextmanager
def open_folder(roots: Sequence[Path], path: str) -> Iterator[CheckedFile]:
    """Open a folder, so that its names can be listed."""
    with resolve_path(roots, path) as resolved:
        _check_exists(resolved, path)
        if resolved.info is not None and not stat.S_ISDIR(resolved.info.st_mode):
            raise ToolFailed(
                f"{quote(path)} is {_describe_kind(resolved.info)}, not a folder; use read_file"
            )
        descriptor = os.open(resolved.name, LIST_FLAGS, dir_fd=resolved.parent)
        try:
            _check_inside(descriptor, roots, path)
            yield CheckedFile(resolved.path, descriptor, os.fstat(descriptor))
        finally:
            os.close(descriptor)


@contextmanager
def open_in_folder(folder: int, name: str) -> Iterator[CheckedFile]:
    """Open a regular file directly in an open folder; links and whatever may wait are refused. Its
    path is only its name."""
    before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    _check_regular(before, name)  # opening a device can have effects, so it is not even tried
    descriptor = os.open(name, os.O_RDONLY | SAFE_FLAGS, dir_fd=folder)
    try:
        info = os.fstat(descriptor)
        _check_regular(info, name)
        yield CheckedFile(Path(name), descriptor, info)
    finally:
        os.close(descriptor)


def read_descriptor(descriptor: int, limit: int) -> bytes:
    """Read up to one byte more than the limit, so that the caller sees that there are more."""
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(limit + 1)


def read_content(roots: Sequence[Path], path: str, limit: int = MAX_BYTES) -> WholeFile:
    with open_file(roots, path) as opened:
        size = opened.info.st_size
        data = read_descriptor(opened.descriptor, limit) if size <= limit else b""
        if size > limit or len(data) > limit:
            raise ToolFailed(
                f"{quote(path)} has {max(size, len(data)):,} bytes, the limit is {limit:,}; "
                "read_file shows parts of it, and a command can change it"
            )
        return WholeFile(opened.path, data, stat.S_IMODE(opened.info.st_mode))


def write_content(
    roots: Sequence[Path],
    path: str,
    data: bytes,
    *,
    expected: bytes | EllipsisType | None = ...,
    mode: int | None = None,
) -> Path:
    """Write these bytes, all or none; with `expected` only if that is the content (None: no file).

    The file's mode is kept unless one is given. Missing folders are made."""
    with resolve_path(roots, path, follow=False) as resolved:
        if path.endswith(("/", "/.")):
            raise ToolFailed(f"{quote(path)} names a folder; name the file to write")
        _check_writable(resolved, path)
        parent = _make_folders(resolved)
        try:
            _check_inside(parent, roots, path)
            _check_expected(parent, resolved.name, expected, path)
            _replace_file(parent, resolved, data, mode)
        finally:
            os.close(parent)
        return resolved.path


def remove_file(roots: Sequence[Path], path: str, *, expected: bytes | EllipsisType = ...) -> Path:
    """Remove a regular file; with `expected` only if that is its content."""
    with resolve_path(roots, path, follow=False) as resolved:
        _check_exists(resolved, path)
        _check_writable(resolved, path)
        _check_inside(resolved.parent, roots, path)
        _check_expected(resolved.parent, resolved.name, expected, path)
        os.unlink(resolved.name, dir_fd=resolved.parent)
        return resolved.path


# --- checks ------------------------------------------------------------------------------------


def _check_exists(resolved: ResolvedPath, path: str) -> None:
    if resolved.info is None:
        home = "; `~` is not the home folder here" if path.startswith("~") else ""
        raise ToolFailed(f"{quote(path)} does not exist{home}; list_directory shows what does")


def _check_regular(info: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise ToolFailed(f"{quote(name)} is {_describe_kind(info)}, not a file")
    if info.st_dev in _pseudo_devices():
        raise ToolFailed(f"{quote(name)} is a file of the system and may not be read")


def _pseudo_devices() -> set[int]:
    found = set()
    for mount in ("/proc", "/sys"):
        with suppress(OSError):
            found.add(os.stat(mount).st_dev)  # noqa: PTH116 - one call for each file read
    with suppress(OSError):
        found.discard(os.stat("/").st_dev)  # noqa: PTH116
    return found


def _describe_kind(info: os.stat_result) -> str:
    return _FILE_KINDS.get(stat.S_IFMT(info.st_mode), "something special")


def _check_inside(descriptor: int, roots: Sequence[Path], path: str) -> None:
    """Check that nobody moved an open folder out of the roots meanwhile."""
    try:
        real = split_path(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115
    except OSError:
        return  # no /proc: the checks of the walk must do
    tops = (split_path(os.path.realpath(root)) for root in roots)
    if not any(real[: len(top)] == top for top in tops):
        raise ToolFailed(f"{quote(path)} was moved out of the folders that may be used")


def _check_writable(resolved: ResolvedPath, path: str) -> None:
    if resolved.info is None:
        return
    _check_regular(resolved.info, path)
    if not resolved.info.st_mode & 0o222:
        raise ToolFailed(f"{quote(path)} is read-only; nothing was written")


def _check_expected(
    parent: int, name: str, expected: bytes | EllipsisType | None, path: str
) -> None:
    if isinstance(expected, EllipsisType):
        return
    try:
        with open_in_folder(parent, name) as (_, there, _):
            same = expected is not None and read_descriptor(there, len(expected)) == expected
    except FileNotFoundError:
        same = expected is None
    if not same:
        raise ToolFailed(f"{quote(path)} was changed meanwhile; read it again. Nothing was done")


# --- writing -----------------------------------------------------------------------------------


def _make_folders(resolved: ResolvedPath) -> int:
    """Open the folder that the file goes to, after making those that are missing."""
    here = os.open(".", FOLDER_FLAGS, dir_fd=resolved.parent)
    for name in resolved.missing:
        try:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=here)
            below = os.open(name, FOLDER_FLAGS, dir_fd=here)
        finally:
            os.close(here)
        here = below
    return here


def _keep_owner(descriptor: int, before: os.stat_result) -> None:
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
        with suppress(PermissionError):  # if we may not give it away, it stays ours
            os.fchown(descriptor, before.st_uid, before.st_gid)


def _replace_file(parent: int, resolved: ResolvedPath, data: bytes, mode: int | None) -> None:
    temporary = f".recollect-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS
    if mode is None and resolved.info is not None:
        mode = resolved.info.st_mode
    # the umask decides about a new file's mode; a file that gets another one starts closed
    descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if resolved.info is not None:
                _keep_owner(descriptor, resolved.info)
            if mode is not None:
                os.fchmod(descriptor, mode & 0o777)
            os.fsync(descriptor)
        os.rename(temporary, resolved.name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise
    with suppress(OSError):  # a folder that may not be listed cannot be synced
        folder = os.open(".", LIST_FLAGS, dir_fd=parent)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
