"""Where a path leads, found out without letting the system follow a single link.

A path is walked folder by folder from a root's descriptor. A link is read, and its target is walked
in the same way: inside the roots it may be followed, out of them it is refused. Outside the roots
nothing is opened or even looked at. The walk is bounded: links in a circle and paths that go up and
down without end fail with a `ToolFailed`, as everything else does.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from recollect.tools.tool import ToolFailed, failure_from

MAX_PATH = 4_096  # characters
MAX_LINKS = 40  # as the Linux kernel has it
MAX_STEPS = 4_000  # folders entered for one path: `a/../` can be repeated
SAFE_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
FOLDER_FLAGS = os.O_DIRECTORY | SAFE_FLAGS | getattr(os, "O_PATH", os.O_RDONLY)


class ResolvedPath(NamedTuple):
    """A place inside the roots: an open folder and a name in it, which is not a link."""

    path: Path  # where it really is
    parent: int
    name: str
    info: os.stat_result | None  # None: nothing is there
    missing: tuple[str, ...] = ()  # folders under `parent` to be made first


def quote(path: object) -> str:
    """A name for a message: on one line, harmless, not too long."""
    text = os.fsdecode(path) if isinstance(path, os.PathLike) else str(path)
    text = text if len(text) <= 300 else f"{text[:200]}…{text[-80:]}"
    return text if text.isprintable() and text else ascii(text)


@contextmanager
def resolve_path(
    roots: Sequence[Path], path: str, *, follow: bool = True
) -> Iterator[ResolvedPath]:
    """Find where a path leads, inside the roots; its folder stays open while the block lasts."""
    _check_spelling(path)
    walk = _PathWalk(roots, path, follow=follow)
    try:
        resolved = walk.resolve()
        means_folder = path.endswith(("/", "/."))
        if means_folder and resolved.info is not None and not stat.S_ISDIR(resolved.info.st_mode):
            raise ToolFailed(f"{quote(path)} is not a folder; leave out the slash at its end")
        yield resolved
    except OSError as error:
        raise failure_from(error, quote(path)) from None
    finally:
        walk.close()


class _PathWalk:
    """Keeps one folder open, the one reached so far; `_names` leads there, without links."""

    def __init__(self, roots: Sequence[Path], path: str, *, follow: bool) -> None:
        self._spellings: list[tuple[list[str], str]] = []
        for root in roots:
            real, spelt = os.path.realpath(root), os.path.abspath(root)  # noqa: PTH100 - text
            self._spellings += [(split_path(spelt), real), (split_path(real), real)]
        self._path, self._follow = path, follow
        self._links, self._steps = MAX_LINKS, MAX_STEPS
        self._root, self._here = "", -1
        self._names: list[str] = []
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/"):
            self._todo = self._anchored(parts)
        else:
            self._root = os.path.realpath(roots[0])
            self._todo = parts

    def close(self) -> None:
        if self._here >= 0:
            os.close(self._here)
            self._here = -1

    def resolve(self) -> ResolvedPath:
        self._restart(self._todo)
        while self._todo:
            name, *rest = self._todo
            if name == "..":
                self._up(rest)
            elif rest:
                if not self._down(name, rest):
                    return self._absent(name, rest)
            elif (found := self._last(name)) is not None:
                return found
        top = os.stat(".", dir_fd=self._here)
        return ResolvedPath(Path(self._root, *self._names), self._here, ".", top)

    def _restart(self, todo: list[str]) -> None:
        self.close()
        self._names, self._todo = [], todo
        self._here = os.open(self._root, FOLDER_FLAGS)

    def _up(self, rest: list[str]) -> None:
        """Walk to the parent again from the root, since an open folder may have been moved."""
        if self._names:
            self._restart([*self._names[:-1], *rest])
        else:
            above = split_path(os.path.dirname(self._root))  # noqa: PTH120 - text, not a path
            self._restart(self._anchored([*above, *rest]))

    def _down(self, name: str, rest: list[str]) -> bool:
        self._steps -= 1
        if self._steps < 0:
            raise ToolFailed(f"{quote(self._path)} takes too many steps; write it shorter")
        try:
            below = os.open(name, FOLDER_FLAGS, dir_fd=self._here)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            self._through(name, rest)
            return True
        os.close(self._here)
        self._here, self._todo = below, rest
        self._names.append(name)
        return True

    def _last(self, name: str) -> ResolvedPath | None:
        try:
            info = os.stat(name, dir_fd=self._here, follow_symlinks=False)
        except FileNotFoundError:
            return ResolvedPath(Path(self._root, *self._names, name), self._here, name, None)
        if stat.S_ISLNK(info.st_mode):
            self._through(name, [])
            return None
        return ResolvedPath(Path(self._root, *self._names, name), self._here, name, info)

    def _absent(self, name: str, rest: list[str]) -> ResolvedPath:
        if ".." in rest:
            raise ToolFailed(f"{quote(self._path)} goes through a folder that is not there")
        path = Path(self._root, *self._names, name, *rest)
        return ResolvedPath(path, self._here, rest[-1], None, (name, *rest[:-1]))

    def _through(self, name: str, rest: list[str]) -> None:
        """Go on through a link; what is neither a folder nor a link fails."""
        try:
            target = os.readlink(name, dir_fd=self._here)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise ToolFailed(f"{quote(self._path)}: {quote(name)} is not a folder") from None
        link = quote(Path(self._root, *self._names, name))
        if not self._follow:
            raise ToolFailed(
                f"{quote(self._path)} goes through {link}, a link to {quote(target)}; "
                "nothing is written through links: name the file it leads to"
            )
        self._links -= 1
        if self._links < 0:
            raise ToolFailed(f"{quote(self._path)} goes through too many links, or in a circle")
        parts = [part for part in target.split("/") if part not in ("", ".")]
        if target.startswith("/"):
            self._restart(self._anchored([*parts, *rest]))
        else:
            self._restart([*self._names, *parts, *rest])

    def _anchored(self, parts: list[str]) -> list[str]:
        """The rest of an absolute path from where it enters a root. Outside the roots `..` is
        resolved as text, so that no foreign folder is opened."""
        folded: list[str] = []
        for number in range(len(parts) + 1):
            for spelling, real in self._spellings:
                if folded == spelling:
                    self._root = real
                    return parts[number:]
            if number == len(parts):
                break
            if parts[number] != "..":
                folded.append(parts[number])
            elif folded:
                folded.pop()
        raise ToolFailed(
            f"{quote(self._path)} leads out of the folders that may be used: "
            f"{', '.join(dict.fromkeys(quote(real) for _, real in self._spellings))}"
        )


def split_path(path: str) -> list[str]:
    return [part for part in path.split("/") if part]


def _check_spelling(path: str) -> None:
    if not path or "\0" in path or len(path) > MAX_PATH:
        raise ToolFailed(f"{quote(path)} is not a path; give 1 to {MAX_PATH:,} characters, no NUL")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise ToolFailed(f"{quote(path)} cannot be a file's name") from None
