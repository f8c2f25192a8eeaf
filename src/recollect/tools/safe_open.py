"""Files of the roots, and no others, however a path is spelled and whatever moves meanwhile.

A path is walked folder by folder from a root's descriptor; the system never follows a link for us.
A link is read, and where it leads is walked in the same way: inside the roots it may be followed
for reading, out of them it is refused, and nothing is ever written through one. What is opened is
checked again: a regular file, still inside, not of `/proc` or `/sys`. The descriptor that was
checked is the one that is read. Nothing here waits for a FIFO or a device. Writing is atomic and
durable: a new file beside the old one takes its name. Every failure is a `ToolFailed`.
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
_LIST_FLAGS = os.O_DIRECTORY | SAFE_FLAGS | os.O_RDONLY
_FILE_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
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
    """A regular file, for reading."""
    with resolve_path(roots, path) as spot, open_resolved(spot, roots, path) as opened:
        yield opened


@contextmanager
def open_resolved(spot: ResolvedPath, roots: Sequence[Path], path: str) -> Iterator[CheckedFile]:
    """The file at a spot that was located; refused if the spot has moved out since."""
    _check_exists(spot, path)
    if spot.info is not None and not stat.S_ISREG(spot.info.st_mode):
        raise ToolFailed(f"{quote(path)} is {_describe_kind(spot.info)}, no file; nothing was read")
    with open_in_folder(spot.parent, spot.name) as (descriptor, info):
        _check_inside(descriptor, roots, path)
        yield CheckedFile(spot.path, descriptor, info)


@contextmanager
def open_folder(roots: Sequence[Path], path: str) -> Iterator[CheckedFile]:
    """A folder whose names can be listed."""
    with resolve_path(roots, path) as spot:
        _check_exists(spot, path)
        if spot.info is not None and not stat.S_ISDIR(spot.info.st_mode):
            raise ToolFailed(
                f"{quote(path)} is {_describe_kind(spot.info)}, no folder; use read_file"
            )
        descriptor = os.open(spot.name, _LIST_FLAGS, dir_fd=spot.parent)
        try:
            _check_inside(descriptor, roots, path)
            yield CheckedFile(spot.path, descriptor, os.fstat(descriptor))
        finally:
            os.close(descriptor)


@contextmanager
def open_in_folder(folder: int, name: str) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file directly in an open folder. A link, or anything that waits, is refused."""
    before = os.stat(name, dir_fd=folder, follow_symlinks=False)
    _check_regular(before, name)  # opening a device can have effects, so it is not even tried
    descriptor = os.open(name, os.O_RDONLY | SAFE_FLAGS, dir_fd=folder)
    try:
        info = os.fstat(descriptor)
        _check_regular(info, name)
        yield descriptor, info
    finally:
        os.close(descriptor)


def open_subfolder(folder: int, name: str) -> int:
    """A folder directly in an open folder, for listing; the caller closes it. Links are refused."""
    return os.open(name, _LIST_FLAGS, dir_fd=folder)


def read_descriptor(descriptor: int, limit: int) -> bytes:
    """All bytes up to one more than the limit, so that the caller sees that there are more."""
    pieces: list[bytes] = []
    left = limit + 1
    while left > 0 and (piece := os.read(descriptor, min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def read_content(roots: Sequence[Path], path: str, limit: int = MAX_BYTES) -> WholeFile:
    with open_file(roots, path) as opened:
        size = opened.info.st_size
        data = read_descriptor(opened.descriptor, limit) if size <= limit else b""
        if size > limit or len(data) > limit:
            raise ToolFailed(
                f"{quote(path)} has {max(size, len(data)):,} bytes, the limit is {limit:,}; "
                "search in it with search_file_content, or read parts of it with a command"
            )
        return WholeFile(opened.path, data, stat.S_IMODE(opened.info.st_mode))


def real_path(roots: Sequence[Path], path: str, *, follow: bool = True) -> Path:
    """Where a path leads, there or not; for rules that judge paths, and for `before_change`."""
    with resolve_path(roots, path, follow=follow) as spot:
        return spot.path


def write_content(
    roots: Sequence[Path],
    path: str,
    data: bytes,
    *,
    expected: bytes | EllipsisType | None = ...,
    mode: int | None = None,
) -> Path:
    """Put these bytes there, all or none. With `expected` only if that is what is there (None:
    nothing). The mode stays what it was unless one is given. Missing folders are made."""
    with resolve_path(roots, path, follow=False) as spot:
        if path.endswith(("/", "/.")):
            raise ToolFailed(f"{quote(path)} names a folder; name the file to write")
        _check_writable(spot, path)
        parent = _make_folders(spot)
        try:
            _check_inside(parent, roots, path)
            _check_expected(parent, spot.name, expected, path)
            _replace_file(parent, spot, data, mode)
        finally:
            os.close(parent)
        return spot.path


def remove_file(roots: Sequence[Path], path: str, *, expected: bytes | EllipsisType = ...) -> Path:
    """Remove a regular file; with `expected` only if that is what is in it."""
    with resolve_path(roots, path, follow=False) as spot:
        _check_exists(spot, path)
        _check_writable(spot, path)
        _check_inside(spot.parent, roots, path)
        _check_expected(spot.parent, spot.name, expected, path)
        os.unlink(spot.name, dir_fd=spot.parent)
        return spot.path


# --- checks ------------------------------------------------------------------------------------


def _check_exists(spot: ResolvedPath, path: str) -> None:
    if spot.info is None:
        home = "; `~` is not the home folder here" if path.startswith("~") else ""
        raise ToolFailed(f"{quote(path)} does not exist{home}; list_directory shows what does")


def _check_regular(info: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise ToolFailed(f"{quote(name)} is {_describe_kind(info)}, no file")
    if info.st_dev in _pseudo_devices():
        raise ToolFailed(f"{quote(name)} is the system's, no file that may be read")


def _pseudo_devices() -> set[int]:
    found = set()
    for place in ("/proc", "/sys"):
        with suppress(OSError):
            found.add(os.stat(place).st_dev)  # noqa: PTH116 - one call for each file read
    with suppress(OSError):
        found.discard(os.stat("/").st_dev)  # noqa: PTH116
    return found


def _describe_kind(info: os.stat_result) -> str:
    return _FILE_KINDS.get(stat.S_IFMT(info.st_mode), "something special")


def _check_inside(descriptor: int, roots: Sequence[Path], path: str) -> None:
    """A folder may have been moved out of the roots while we stood in it."""
    try:
        real = split_path(os.readlink(f"/proc/self/fd/{descriptor}"))  # noqa: PTH115
    except OSError:
        return  # no /proc: what the walk has checked must do
    for root in roots:
        top = split_path(os.path.realpath(root))
        if real[: len(top)] == top:
            return
    raise ToolFailed(f"{quote(path)} was moved out of the folders that may be used")


def _check_writable(spot: ResolvedPath, path: str) -> None:
    if spot.info is None:
        return
    _check_regular(spot.info, path)
    if not spot.info.st_mode & 0o222:
        raise ToolFailed(f"{quote(path)} is read-only; nothing was written")


def _check_expected(
    parent: int, name: str, expected: bytes | EllipsisType | None, path: str
) -> None:
    if isinstance(expected, EllipsisType):
        return
    try:
        with open_in_folder(parent, name) as (descriptor, _):
            same = expected is not None and read_descriptor(descriptor, len(expected)) == expected
    except FileNotFoundError:
        same = expected is None
    if not same:
        raise ToolFailed(f"{quote(path)} was changed meanwhile; read it again. Nothing was done")


# --- writing -----------------------------------------------------------------------------------


def _make_folders(spot: ResolvedPath) -> int:
    """The folder the file goes to, open, after making those that are missing."""
    here = os.open(".", FOLDER_FLAGS, dir_fd=spot.parent)
    for name in spot.missing:
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
        with suppress(PermissionError):  # whoever may not give it away keeps it
            os.fchown(descriptor, before.st_uid, before.st_gid)


def _replace_file(parent: int, spot: ResolvedPath, data: bytes, mode: int | None) -> None:
    temporary = f".recollect-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS
    if mode is None and spot.info is not None:
        mode = spot.info.st_mode
    # 0o666 leaves a new file's mode to the umask; one that is to have another starts closed
    descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=parent)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if spot.info is not None:
                _keep_owner(descriptor, spot.info)
            if mode is not None:
                os.fchmod(descriptor, mode & 0o777)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, spot.name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=parent)
        raise
    with suppress(OSError):  # a folder that may not be listed cannot be synced
        folder = os.open(".", _LIST_FLAGS, dir_fd=parent)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
