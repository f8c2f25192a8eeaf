"""Walks the files under a folder, without what git would not know.

Folders are entered through descriptors and never through links, so a walk stays inside the roots
and ends. It leaves out what `.gitignore` files exclude, `.git` itself and recollect's own data: an
agent that finds its own log makes it grow without end. Every walk is bounded in names, depth and
time, and says when one of these bounds cut it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recollect.settings import data_directory
from recollect.tools.safe_open import (
    LIST_FLAGS,
    CheckedFile,
    open_in_folder,
    read_content,
    read_descriptor,
)
from recollect.tools.tool import ToolFailed
from recollect.workspace.ignore_files import IgnoreLevel, IgnoreRule, is_ignored, parse_ignore_file

MAX_WALKED = 200_000  # names that a walk looks at
MAX_DEPTH = 64  # folders inside each other, each of which holds a descriptor
MAX_SECONDS = 15.0
MAX_IGNORE_FILE = 200_000  # bytes


class WalkedFile(NamedTuple):
    """A file of a walk: a name in an open folder, and its path from where the walk began."""

    folder: int
    name: str
    path: str


class _WalkLevel(NamedTuple):
    folder: int
    names: tuple[str, ...]  # from the root
    entries: Iterator[tuple[str, bool]]
    ignores: tuple[IgnoreLevel, ...]


class DirectoryWalk:
    """The files under a folder in the order of their names; `cut` says why some are missing."""

    def __init__(self, start: CheckedFile, roots: Sequence[Path]) -> None:
        self._start = start
        self._names = _names_from_root(start.path, roots)
        self._ignores = _ignore_files_above(self._names, start.path, roots)
        self._left = MAX_WALKED
        self._end = time.monotonic() + MAX_SECONDS
        self._own = _data_folder()
        self.cut = ""

    def __iter__(self) -> Iterator[WalkedFile]:
        below = len(self._names)
        levels = [self._level(os.dup(self._start.descriptor), self._names, self._ignores)]
        try:
            while levels:
                level = levels[-1]
                name, is_folder = next(level.entries, ("", False))
                if not name:
                    os.close(levels.pop().folder)
                    continue
                names = (*level.names, name)
                if not self._within_bounds():
                    return
                if is_ignored(names, level.ignores, folder=is_folder):
                    continue
                if is_folder:
                    self._enter(levels, name, names)
                else:
                    yield WalkedFile(level.folder, name, "/".join(names[below:]))
        finally:
            for level in levels:
                os.close(level.folder)

    def _within_bounds(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self.cut = f"only {MAX_WALKED:,} names were looked at"
            return False
        if time.monotonic() > self._end:
            self.cut = f"the search ended after {MAX_SECONDS:g} seconds"
            return False
        return True

    def _enter(self, levels: list[_WalkLevel], name: str, names: tuple[str, ...]) -> None:
        if len(levels) >= MAX_DEPTH:
            self.cut = f"folders deeper than {MAX_DEPTH} were left out"
            return
        with suppress(OSError):  # unreadable, or gone meanwhile
            folder = os.open(name, LIST_FLAGS, dir_fd=levels[-1].folder)
            info = os.fstat(folder)
            if (info.st_dev, info.st_ino) == self._own:
                os.close(folder)
            else:
                levels.append(self._level(folder, names, levels[-1].ignores))

    def _level(
        self, folder: int, names: tuple[str, ...], ignores: tuple[IgnoreLevel, ...]
    ) -> _WalkLevel:
        found: list[tuple[str, bool]] = []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name == ".git" or entry.is_symlink():
                    continue
                found.append((entry.name, entry.is_dir(follow_symlinks=False)))
                if len(found) > self._left:
                    break
        if (".gitignore", False) in found:
            ignores = (*ignores, IgnoreLevel(len(names), _read_ignore_file(folder)))
        return _WalkLevel(folder, names, iter(sorted(found)), ignores)


def _names_from_root(path: Path, roots: Sequence[Path]) -> tuple[str, ...]:
    real = (os.path.realpath(root) for root in roots)
    return next((path.relative_to(top).parts for top in real if path.is_relative_to(top)), ())


def _ignore_files_above(
    names: Sequence[str], path: Path, roots: Sequence[Path]
) -> tuple[IgnoreLevel, ...]:
    """The ignore files between a root and a folder below it."""
    found: list[IgnoreLevel] = []
    folders = reversed(path.parents[: len(names)])
    for depth, folder in enumerate(folders):
        with suppress(ToolFailed):
            content = read_content(roots, str(folder / ".gitignore"), MAX_IGNORE_FILE)
            rules = parse_ignore_file(content.data.decode("utf-8", "replace"))
            found.append(IgnoreLevel(depth, rules))
    return tuple(found)


def _read_ignore_file(folder: int) -> tuple[IgnoreRule, ...]:
    with suppress(OSError, ToolFailed), open_in_folder(folder, ".gitignore") as file:
        data = read_descriptor(file.descriptor, MAX_IGNORE_FILE)
        if len(data) <= MAX_IGNORE_FILE:
            return parse_ignore_file(data.decode("utf-8", "replace"))
    return ()


def _data_folder() -> tuple[int, int] | None:
    with suppress(OSError):
        info = data_directory().stat()
        return info.st_dev, info.st_ino
    return None
