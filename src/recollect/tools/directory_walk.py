"""Walks the files under a folder, without those that ignore files hide.

Folders are entered through descriptors and never through links, so a walk stays inside the roots
and ends. It leaves out what ignore files hide, `.git` itself and recollect's own data: an agent
that finds its own log makes it grow without end. Every walk is bounded in names, depth and time,
says when one of these bounds cut it, and counts what was hidden.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from recollect.settings import data_directory
from recollect.tools.ignored_files import LeftOut
from recollect.tools.safe_open import LIST_FLAGS, CheckedFile
from recollect.workspace.hidden_paths import IgnoreRules, read_ignore_rules

MAX_WALKED = 200_000  # names that a walk looks at
MAX_NAMES = 500_000  # of one folder that are put in order; more than that are cut arbitrarily
MAX_DEPTH = 64  # folders inside each other, each of which holds a descriptor
MAX_SECONDS = 15.0


class WalkedFile(NamedTuple):
    """A file of a walk: a name in an open folder, and its path from where the walk began."""

    folder: int
    name: str
    path: str


class _WalkLevel(NamedTuple):
    folder: int
    names: tuple[str, ...]  # from the top of the rules
    entries: Iterator[tuple[str, bool]]
    rules: IgnoreRules


class DirectoryWalk:
    """The files under a folder in the order of their names; `cut` says why some are missing.

    Of the files that git ignores, only those that `counts` accepts are counted as left out."""

    def __init__(
        self,
        start: CheckedFile,
        roots: Sequence[Path],
        *,
        use_git: bool = True,
        counts: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._start, self._counts = start, counts
        self._rules, names = read_ignore_rules(start.path, roots, use_git=use_git)
        self._names = tuple(names)
        self._left = MAX_WALKED
        self._end = time.monotonic() + MAX_SECONDS
        self._own = _data_folder()
        self.cut = ""
        self.left_out = LeftOut()

    def __iter__(self) -> Iterator[WalkedFile]:
        below = len(self._names)
        levels = [self._level(os.dup(self._start.descriptor), self._names, self._rules)]
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
                path = "/".join(names[below:])
                if hider := level.rules.hider(names, folder=is_folder):
                    if is_folder or self._counts(path):
                        self.left_out.add(hider)
                elif is_folder:
                    self._enter(levels, name, names)
                else:
                    yield WalkedFile(level.folder, name, path)
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
                levels.append(self._level(folder, names, levels[-1].rules))

    def _level(self, folder: int, names: tuple[str, ...], rules: IgnoreRules) -> _WalkLevel:
        found: list[tuple[str, bool]] = []
        with suppress(OSError), os.scandir(folder) as entries:
            found = [
                (entry.name, entry.is_dir(follow_symlinks=False))
                for entry in islice(entries, MAX_NAMES)
                if entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            ]
        if names != self._names:  # the rules of the first folder are read already
            rules = rules.enter_folder(names, {name for name, _ in found})
        kept = sorted(one for one in found if one[0] != ".git")
        return _WalkLevel(folder, names, iter(kept[: self._left + 1]), rules)


def _data_folder() -> tuple[int, int] | None:
    with suppress(OSError):
        info = data_directory().stat()
        return info.st_dev, info.st_ino
    return None
