"""Watches over the files of a workspace that decide what runs later, where nothing holds them.

Before a command the protected paths are copied; after it, and while it runs, they are compared and
put back if they differ. New ones are taken away: a protected name in a project's top folder, what
decides in a folder of git's, and settings and hooks in new repositories that would run programs.
The version that was found is kept in a folder aside, for it may be the user's; each repair is
reported. The standard library only: this happens in the supervisor, also after our death.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress

from recollect.execution.command_plan import ProtectedPaths
from recollect.execution.git_folders import (
    DECIDING_NAMES,
    MAX_FOLDERS,
    MAX_GROWN_FOLDERS,
    find_git_folders,
)
from recollect.execution.new_repositories import disarm_repository
from recollect.execution.saved_files import (
    SavedFiles,
    SavedTree,
    differs,
    identify,
    list_names,
    restore_tree,
    same_contents,
    save_tree,
)
from recollect.workspace.protected_names import find_protected, holds_protected


class ProtectedFiles:
    def __init__(self, paths: ProtectedPaths, before: SavedFiles) -> None:
        self._paths, self._before, self._saved = paths, before, before.trees
        self._known = {*paths.kept, *paths.occupied}
        # where not all repositories were found, an old one may be seen for the first time
        self._since = 0 if paths.all_git else before.time

    def check(self, *, last: bool) -> Iterator[str]:
        """Put back what differs and take away what is new; a sentence about each. `last` says that
        no process of the command is left: then contents are compared and repositories searched."""
        for path, before in self._saved.items():
            if differs(before, save_tree(path, contents=last), contents=last):
                now = save_tree(path)
                if differs(before, now, contents=True):
                    yield self._put_back(path, before)
                    now = save_tree(path)
                if same_contents(before, now):  # else it was changed again: another round
                    self._saved[path] = now
        for path in self._new_names():
            yield self._take_away(path)
        if last:
            # many new folders must not hide a repository behind them
            limit = MAX_GROWN_FOLDERS if self._paths.all_git else MAX_FOLDERS
            found = find_git_folders(self._paths.roots, limit, self._open_folder, whole=True)
            for path in (*found.folders, *found.links):
                known = self._before.repositories.get(path) == identify(path)
                if not known and _changed_since(path, self._since):
                    yield from disarm_repository(path, found, self._paths, self._set_aside)

    def _new_names(self) -> Iterator[str]:
        for folder in self._paths.projects:
            for name in list_names(folder):
                if holds_protected(name) and self._is_new_link(f"{folder}/{name}"):
                    yield f"{folder}/{name}"
                elif holds_protected(name):
                    below = (f"{name}/{item}" for item in list_names(f"{folder}/{name}"))
                    yield from (f"{folder}/{n}" for n in below if self._is_new(folder, n))
                elif self._is_new(folder, name):
                    yield f"{folder}/{name}"
        decide = (f"{folder}/{n}" for folder in self._paths.git_folders for n in DECIDING_NAMES)
        for path in (*self._paths.absent, *decide):
            if path not in self._known and os.path.lexists(path):
                yield path

    def _is_new(self, folder: str, name: str) -> bool:
        counts = _is_protected(name, at_home=folder == self._paths.home)
        return counts and f"{folder}/{name}" not in self._known

    def _put_back(self, path: str, before: SavedTree) -> str:
        kept = self._set_aside(path)
        where = f"; the changed version is {kept}" if kept else ""
        self._open_folder(os.path.dirname(path))
        try:
            restore_tree(path, before)
        except OSError as error:
            return f"PROTECTED {path} was changed and cannot be put back: {error.strerror}{where}"
        return f"PROTECTED {path} was changed while the command ran and is as before{where}"

    def _take_away(self, path: str) -> str:
        kept = self._set_aside(path)
        if not kept:
            return f"PROTECTED {path} was made while the command ran and cannot be taken away"
        return f"PROTECTED {path} was made while the command ran; it is now {kept}"

    def _set_aside(self, path: str) -> str:
        """Move what is at a path out of the way; where it is now, empty if nothing was moved."""
        for link in filter(self._is_new_link, self._folders_above(path)):
            self._move_aside(link)  # it would lead us elsewhere
        if not os.path.lexists(path):
            return ""
        if kept := self._move_aside(path):
            return kept
        # the command may have closed them to us
        self._open_folder(os.path.dirname(path))
        self._open_tree(path)
        if kept := self._move_aside(path):
            return kept
        with suppress(OSError):
            kept = f"{path}.replaced-{os.getpid()}"
            os.rename(path, kept)
            return kept
        return ""

    def _move_aside(self, path: str) -> str:
        with suppress(OSError):
            os.makedirs(self._paths.aside, mode=0o700, exist_ok=True)
            number = len(os.listdir(self._paths.aside)) + 1
            kept = f"{self._paths.aside}/{number}-{os.path.basename(path)}"
            shutil.move(path, kept)
            return kept
        return ""

    def _folders_above(self, path: str) -> Iterator[str]:
        """The folders between a root and a path, the nearest to the root first."""
        for root in self._paths.roots:
            parts = path.removeprefix(f"{root}/").split("/") if path.startswith(f"{root}/") else []
            yield from (f"{root}/{'/'.join(parts[:at])}" for at in range(1, len(parts)))

    def _is_new_link(self, path: str) -> bool:
        with suppress(OSError):
            return os.path.islink(path) and os.lstat(path).st_ctime_ns >= self._before.time
        return False

    def _open_tree(self, path: str) -> None:
        waiting = [path]
        for _ in range(MAX_FOLDERS):
            if waiting and not os.path.islink(folder := waiting.pop()) and os.path.isdir(folder):
                self._open_folder(folder)
                waiting += [f"{folder}/{name}" for name in list_names(folder)]

    def _open_folder(self, folder: str) -> bool:
        """Give ourselves the rights to a folder of ours that a command took from us; whether it
        was so. No link is followed, whoever else is at work."""
        try:
            opened = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            found = os.fstat(opened)
            closed = found.st_mode & stat.S_IRWXU != stat.S_IRWXU
            if not closed or found.st_uid != os.geteuid() or found.st_ctime_ns < self._before.time:
                return False
            mode = stat.S_IMODE(found.st_mode) | stat.S_IRWXU
            os.chmod(f"/proc/self/fd/{opened}", mode)
        except OSError:
            return False
        finally:
            os.close(opened)
        return True


def list_protected(folder: str, *, at_home: bool = False) -> Iterator[str]:
    """The protected paths that exist in a project's top folder, or in the home."""
    for name in list_names(folder):
        names = [f"{name}/{item}" for item in list_names(f"{folder}/{name}")]
        for candidate in names if holds_protected(name) else [name]:
            if _is_protected(candidate, at_home=at_home):
                yield f"{folder}/{candidate}"


def _is_protected(name: str, *, at_home: bool) -> bool:
    found = find_protected(name)
    return found is not None and found.in_sandbox and (found.place == "project" or at_home)


def _changed_since(path: str, since: int) -> bool:
    for name in (path, f"{path}/HEAD", *(f"{path}/{name}" for name in DECIDING_NAMES)):
        with suppress(OSError):
            if os.lstat(name).st_ctime_ns >= since:  # which no program can set
                return True
    return False
