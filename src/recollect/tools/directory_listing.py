"""What is in a folder, and which files a pattern means: `list_directory` and `glob`.

Folders are entered through descriptors and never through links, so a walk stays inside the roots
and ends. What `.gitignore` files leave out, `.git` itself and recollect's own data are not walked:
an agent that finds its own log makes it grow without end. Every walk is bounded in names, depth
and time, and a result says when one of these bounds cut it.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recollect.settings import data_directory
from recollect.tools.glob_pattern import GlobPattern, parse_glob
from recollect.tools.resolve_path import quote
from recollect.tools.safe_open import (
    CheckedFile,
    open_folder,
    open_in_folder,
    open_subfolder,
    read_content,
    read_descriptor,
)
from recollect.tools.tool import ToolFailed
from recollect.workspace.ignore_files import IgnoreLevel, IgnoreRule, is_ignored, parse_ignore_file

MAX_SHOWN = 1_000  # names in a listing
MAX_FOUND = 500  # files that a glob shows
MAX_WALKED = 200_000  # names that a walk looks at
MAX_DEPTH = 64  # folders inside each other, each of which holds a descriptor
MAX_SECONDS = 15.0
MAX_IGNORE_FILE = 200_000  # bytes


class WalkedFile(NamedTuple):
    """A file that a walk came by: a name in an open folder, and its path from where it began."""

    folder: int
    name: str
    path: str


class _WalkLevel(NamedTuple):
    folder: int
    names: tuple[str, ...]  # from the root
    entries: Iterator[tuple[str, bool]]
    ignores: tuple[IgnoreLevel, ...]


class DirectoryWalk:
    """The files under a folder in the order of their names; `cut` says why some are not there."""

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
                if not self._goes_on():
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

    def _goes_on(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self.cut = f"only {MAX_WALKED:,} names were looked at"
        elif time.monotonic() > self._end:
            self.cut = f"the search ended after {MAX_SECONDS:g} seconds"
        else:
            return True
        return False

    def _enter(self, levels: list[_WalkLevel], name: str, names: tuple[str, ...]) -> None:
        if len(levels) >= MAX_DEPTH:
            self.cut = f"folders deeper than {MAX_DEPTH} were left out"
            return
        with suppress(OSError):  # unreadable, or gone meanwhile
            folder = open_subfolder(levels[-1].folder, name)
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
    for root in roots:
        real = os.path.realpath(root)
        if path.is_relative_to(real):
            return path.relative_to(real).parts
    return ()


def _ignore_files_above(
    names: Sequence[str], path: Path, roots: Sequence[Path]
) -> tuple[IgnoreLevel, ...]:
    """The ignore files between a root and a folder below it."""
    found: list[IgnoreLevel] = []
    above = path
    for _ in names:
        above = above.parent
    for depth, name in enumerate(names):
        with suppress(ToolFailed):
            content = read_content(roots, str(above / ".gitignore"), MAX_IGNORE_FILE)
            found.append(
                IgnoreLevel(depth, parse_ignore_file(content.data.decode("utf-8", "replace")))
            )
        above = above / name
    return tuple(found)


def _read_ignore_file(folder: int) -> tuple[IgnoreRule, ...]:
    with suppress(OSError, ToolFailed), open_in_folder(folder, ".gitignore") as (descriptor, _):
        data = read_descriptor(descriptor, MAX_IGNORE_FILE)
        if len(data) <= MAX_IGNORE_FILE:
            return parse_ignore_file(data.decode("utf-8", "replace"))
    return ()


def _data_folder() -> tuple[int, int] | None:
    try:
        info = data_directory().stat()
    except OSError:
        return None
    return info.st_dev, info.st_ino


# --- tools -------------------------------------------------------------------------------------


def list_folder(roots: Sequence[Path], path: str) -> str:
    """A folder as the model sees it; `read_file` gives the same for a folder."""
    folders: list[str] = []
    files: list[str] = []
    more = False
    with open_folder(roots, path) as opened:
        with os.scandir(opened.descriptor) as entries:
            for number, entry in enumerate(entries):
                if number >= MAX_WALKED:
                    more = True
                    break
                is_folder = entry.is_dir(follow_symlinks=False)
                (folders if is_folder else files).append(entry.name)
        names = [*sorted(folders), *sorted(files)]
        lines = [
            _describe_entry(opened.descriptor, name, is_folder=number < len(folders))
            for number, name in enumerate(names[:MAX_SHOWN])
        ]
    count = f"{len(folders):,} folders and {len(files):,} files"
    head = f"{quote(opened.path)}: {'more than ' if more else ''}{count}"
    if len(names) > MAX_SHOWN:
        lines.append(f"[{len(names) - MAX_SHOWN:,} more are not shown; glob finds by pattern]")
    return "\n".join([head, *lines])


def _describe_entry(folder: int, name: str, *, is_folder: bool) -> str:
    if is_folder:
        return f"{quote(name)}/"
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            return f"{quote(name)} -> {quote(os.readlink(name, dir_fd=folder))}"
    except OSError:
        return quote(name)
    if not stat.S_ISREG(info.st_mode):
        return f"{quote(name)} (no regular file)"
    return f"{quote(name)} ({info.st_size:,} bytes)"


def parse_pattern(pattern: str) -> GlobPattern:
    """A glob as a model writes it, or a `ToolFailed` that says what is wrong with it."""
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolFailed("a pattern begins in a folder: name that in `path`, and go down from it")
    if not pattern.strip("/."):
        raise ToolFailed("the pattern is empty; `**/*` means all files")
    try:
        return parse_glob(pattern)
    except ValueError as error:
        raise ToolFailed(f"{quote(pattern)}: {error}") from None


def find_files(roots: Sequence[Path], pattern: str, path: str) -> str:
    """The files that fit a pattern, as the model sees them."""
    wanted = parse_pattern(pattern)
    found: list[tuple[int, str]] = []
    with open_folder(roots, path) as start:
        walk = DirectoryWalk(start, roots)
        for file in walk:
            if wanted.fits(file.path.split("/")):
                with suppress(OSError):
                    info = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False)
                    found.append((info.st_mtime_ns, str(start.path / file.path)))
    note = f" ({walk.cut})" if walk.cut else ""
    if not found:
        deeper = "" if "/" in pattern else f"; `**/{quote(pattern)}` looks in every folder"
        return f"No file fits {quote(pattern)} in {quote(start.path)}{note}{deeper}."
    found.sort(key=lambda item: (-item[0], item[1]))
    lines = [quote(name) for _, name in found[:MAX_FOUND]]
    if len(found) > MAX_FOUND:
        rest = len(found) - MAX_FOUND
        lines.append(f"[{rest:,} older ones are not shown; use a narrower pattern or path]")
    count = f"{len(found):,} file{'s' if len(found) > 1 else ''}"
    where = f"{quote(pattern)} in {quote(start.path)}"
    return "\n".join([f"{count} fit {where}, newest first{note}:", *lines])
