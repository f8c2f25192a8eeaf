"""Copies files and folders before a command, and says whether they differ after it.

The standard library only, and little of it: the supervisor needs this before a command starts, and
the rest of what it does for protected files while the command runs.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

MAX_BYTES = 8 << 20  # of one file that can be put back
_MAX_FILES = 20_000


class _Saved(NamedTuple):
    mode: int
    mark: tuple[int, ...]  # changes whenever the file does, unless it is written through a mapping
    content: bytes | None  # of a file, or where a link leads; None: a folder, or too large


SavedTree = dict[str, _Saved]


class SavedFiles(NamedTuple):
    """What was there before a command."""

    trees: dict[str, SavedTree]  # by the path that was copied
    repositories: dict[str, tuple[int, int]]  # git's folders and which files they are
    time: int  # a little before, in nanoseconds: filesystems have coarse clocks

    def to_json(self) -> list[Any]:
        trees = {
            path: {item: _to_json(saved) for item, saved in tree.items()}
            for path, tree in self.trees.items()
        }
        return [trees, self.repositories, self.time]

    @classmethod
    def from_json(cls, given: list[Any]) -> SavedFiles:
        trees, repositories, started = given
        return cls(
            {
                path: {item: _from_json(*saved) for item, saved in tree.items()}
                for path, tree in trees.items()
            },
            {path: (device, number) for path, (device, number) in repositories.items()},
            started,
        )


def _to_json(saved: _Saved) -> list[Any]:
    text = None if saved.content is None else saved.content.decode("latin-1")
    return [saved.mode, saved.mark, text]


def _from_json(mode: int, mark: list[int], text: str | None) -> _Saved:
    return _Saved(mode, tuple(mark), None if text is None else text.encode("latin-1"))


def save_files(paths: Iterable[str], repositories: Iterable[str]) -> SavedFiles:
    started = time.time_ns() - 10**9
    trees = {path: save_tree(path) for path in paths}
    return SavedFiles(trees, {path: identify(path) for path in repositories}, started)


def identify(path: str) -> tuple[int, int]:
    """Which file it is, whatever its path; nothing has an identity of its own."""
    with suppress(OSError):
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    return 0, 0


def same_contents(before: SavedTree, now: SavedTree) -> bool:
    return before.keys() == now.keys() and all(
        (saved.mode, saved.content) == (now[path].mode, now[path].content)
        for path, saved in before.items()
    )


def list_names(folder: str) -> list[str]:
    with suppress(OSError):
        return sorted(os.listdir(folder))
    return []


def _walk(path: str) -> Iterator[str]:
    """A path and all below it, folders first; no link is followed."""
    waiting = [path]
    for _ in range(_MAX_FILES):
        if not waiting:
            return
        path = waiting.pop()
        yield path
        with suppress(OSError):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                waiting += [f"{path}/{name}" for name in list_names(path)]


def save_tree(path: str, *, contents: bool = True) -> SavedTree:
    saved = {}
    for item in _walk(path):
        with suppress(OSError):
            found = os.lstat(item)
            is_folder = stat.S_ISDIR(found.st_mode)
            mark = (
                found.st_ino,
                found.st_nlink,
                found.st_size,
                found.st_mtime_ns,
                found.st_ctime_ns,
            )
            content = _read(item, found) if contents and not is_folder else None
            saved[item] = _Saved(found.st_mode, () if is_folder else mark, content)
    return saved


def _read(path: str, found: os.stat_result) -> bytes | None:
    if stat.S_ISLNK(found.st_mode):
        return os.fsencode(os.readlink(path))
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
        return None
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        return file.read(MAX_BYTES + 1)


def differs(before: SavedTree, now: SavedTree, *, contents: bool) -> bool:
    """At last the contents count: a mark may differ after `touch`, and need not after a write
    through a mapping. A new hard link counts too: a write through it would come later."""
    if before.keys() != now.keys():
        return True
    for path, saved in before.items():
        other = now[path]
        if saved.mode != other.mode or saved.mark[1:2] != other.mark[1:2]:
            return True
        same = saved.content == other.content if contents else saved.mark == other.mark
        if not same or (saved.content is None and saved.mark != other.mark):
            return True
    return False


def restore_tree(path: str, before: SavedTree) -> None:
    """Write a tree anew; what was at the path has been moved away."""
    _make_parents(path)
    for item, saved in before.items():
        if stat.S_ISDIR(saved.mode):
            os.mkdir(item, 0o700)
        elif stat.S_ISLNK(saved.mode):
            os.symlink(os.fsdecode(saved.content or b""), item)
        elif saved.content is not None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with open(os.open(item, flags, 0o600), "wb") as file:
                file.write(saved.content)
        elif stat.S_ISREG(saved.mode):
            raise OSError(0, f"it has more than {MAX_BYTES:,} bytes")
    for item, saved in reversed(list(before.items())):
        if not stat.S_ISLNK(saved.mode) and os.path.lexists(item):
            os.chmod(item, stat.S_IMODE(saved.mode))


def _make_parents(path: str) -> None:
    """Make the folders above a path real ones again: a link in their place leads elsewhere."""
    above = os.path.dirname(path)
    missing: list[str] = []
    while above != "/" and not os.path.isdir(above):
        missing.append(above)
        above = os.path.dirname(above)
    for folder in reversed(missing):
        if os.path.lexists(folder):
            os.rename(folder, f"{folder}.replaced-{os.getpid()}")
        os.mkdir(folder, 0o755)
