"""Which files with a secret name lie below a folder: what the judge of commands cannot see.

A link counts by its own name and by the one it leads to. Whether git has a file is read from its
index, and what an ignore file shows again (`!.env`) is noted, because searches obey it. What the
user shows (`permissions.show_secrets`) is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from recollect.permissions.folder_contents import FindSecrets, FolderSecrets, SecretFile
from recollect.permissions.protected_paths import names_secret
from recollect.workspace.git_index import find_repository, read_index, read_regular
from recollect.workspace.secret_walk import MOST_ENTRIES, SecretWalk, WalkedName
from recollect.workspace.workspace_secrets import SecretFinder

_MOST_SECRETS = 1_000
_LARGEST_IGNORE = 100_000
_IGNORE_FILES = frozenset({".gitignore", ".ignore", ".rgignore", ".fdignore", ".agignore"})
_SYSTEM = ("/usr/include", "/usr/lib", "/usr/share", "/usr/src")  # what everybody has installed
_FULL_PATHS = (2, 3)  # versions of the index; the fourth shortens paths by the one before


def secret_finder(
    root: Path, most_entries: int = MOST_ENTRIES, shown: SecretFinder | None = None
) -> FindSecrets:
    """The function that looks below a folder, given as a line in `root` would name it; `shown`
    knows what the user shows."""

    def find_secrets(folder: str) -> FolderSecrets:
        start = root / Path(folder).expanduser()
        if os.path.normpath(start).startswith(_SYSTEM):
            return FolderSecrets()
        try:
            if not start.is_dir():
                return FolderSecrets(exists=False)
            return _Search(start, root, shown).look(SecretWalk(start, most_entries, all_names=True))
        except OSError:
            return FolderSecrets(complete=False)

    return find_secrets


class _Search:
    def __init__(self, start: Path, root: Path, shown: SecretFinder | None) -> None:
        self._start, self._root, self._finder = start, root, shown
        self._secrets: list[str] = []
        self._shown: list[str] = []  # patterns that an ignore file takes back
        self._has_option_names = False

    def look(self, walk: SecretWalk) -> FolderSecrets:
        complete = True
        for name in walk:
            self._take(name)
            if len(self._secrets) > _MOST_SECRETS:
                complete = False
                break
        tracked = _tracked_paths(self._start, self._root) if self._secrets else None
        files = (
            SecretFile(
                path,
                tracked is None or tracked.has(self._start / path),
                any(fnmatchcase(path.rpartition("/")[2], pattern) for pattern in self._shown),
            )
            for path in self._secrets
        )
        return FolderSecrets(
            tuple(files), complete and walk.complete, has_option_names=self._has_option_names
        )

    def _take(self, name: WalkedName) -> None:
        entry, is_secret = name.entry, name.is_secret
        self._has_option_names = self._has_option_names or entry.name.startswith("-")
        if not is_secret and entry.is_symlink():
            is_secret = names_secret(str(Path(entry.path).readlink()))
        if is_secret and not (self._finder is not None and self._finder.shows(entry.path)):
            self._secrets.append(name.path)
        if entry.name in _IGNORE_FILES:
            self._shown += _shown_again(entry.path)


def _shown_again(file: str) -> Iterator[str]:
    text = read_regular(file, _LARGEST_IGNORE) or b""
    for line in text.decode("utf-8", "replace").splitlines():
        if line.startswith("!"):
            yield line[1:].strip().rstrip("/").rpartition("/")[2] or "*"


class _Index:
    """The paths that a repository's index has, searched as bytes."""

    def __init__(self, top: Path, content: bytes) -> None:
        self.top, self.content = top, content

    def has(self, path: Path) -> bool:
        try:
            name = os.fsencode(os.path.relpath(path, self.top))
        except ValueError:
            return True
        return name + b"\0" in self.content


def _tracked_paths(start: Path, root: Path) -> _Index | None:
    """The index of the repository that a folder lies in; None: everything may be tracked."""
    repository = find_repository(os.path.normpath(start))
    if not repository:
        return _Index(root, b"")
    content = read_index(repository)
    if content is None:
        return None
    plain = not content or int.from_bytes(content[4:8], "big") in _FULL_PATHS
    return _Index(Path(repository), content) if plain else None
