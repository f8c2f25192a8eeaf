"""Walks the names below a folder, and knows which of them lie in a folder that holds secrets.

No link is followed. What git keeps for itself is skipped, and packages that were installed
(`node_modules`, `site-packages`): they were published, and hold certificates and sample keys. A
virtual environment named `.env` is no secret.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from recollect.workspace.secret_names import is_secret_folder, is_secret_name

MOST_ENTRIES = 200_000
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "site-packages", "dist-packages"})
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


class WalkedName(NamedTuple):
    entry: os.DirEntry[str]
    path: str  # from where the walk began
    is_secret: bool  # by its name, or by that of a folder on the way to it


class SecretWalk:
    """The files and links below a folder that are secrets by their names or may lead to one; with
    `all_names` all files and links."""

    def __init__(
        self, start: Path | str, most_entries: int = MOST_ENTRIES, *, all_names: bool = False
    ) -> None:
        self._start, self._most, self._all_names = str(start), most_entries, all_names
        self.complete = True  # False: there is too much to look at
        self.closed: list[str] = []  # folders of ours that we may not look into

    def __iter__(self) -> Iterator[WalkedName]:
        left = self._most
        waiting = [("", False)]
        while waiting:
            below, secret = waiting.pop()
            prefix = f"{below}/" if below else ""
            entries = self._list(below)
            left -= len(entries)
            if left < 0:
                self.complete = False
                return
            for entry in entries:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    if name not in SKIPPED_FOLDERS:
                        named = secret or is_secret_place(entry.path)
                        waiting.append((prefix + name, named))
                    continue
                named = secret or is_secret_name(name.lower())
                if named or self._all_names or entry.is_symlink():
                    yield WalkedName(entry, prefix + name, named)

    def _list(self, below: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(f"{self._start}/{below}") as found:
                return list(found)
        except PermissionError:
            if _is_ours(f"{self._start}/{below}"):
                self.closed.append(below)
        except OSError as error:
            # it is gone meanwhile, or too deep to be named
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
                self.complete = False
        return []


def _is_ours(folder: str) -> bool:
    """Whether a command of ours could open a folder to itself, and then look into it."""
    with suppress(OSError):
        return os.lstat(folder).st_uid == os.geteuid()
    return False


def is_secret_place(folder: str) -> bool:
    """Whether everything in a folder is secret; a virtual environment named `.env` is none."""
    name = os.path.basename(folder).lower()
    if not is_secret_folder(name):
        return False
    return not (name.startswith(".env") and os.path.lexists(f"{folder}/{_VIRTUAL_ENVIRONMENT}"))
