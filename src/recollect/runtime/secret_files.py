"""Which files with a secret name lie below a folder: what the judge of commands cannot see.

A bounded walk that follows no link. What git keeps for itself is skipped, and packages that were
installed (`node_modules`, `site-packages`): they were published, and hold certificates and sample
keys. A link counts by its own name and by the one it leads to. Whether git has a file is read from
its index, and what an ignore file shows again (`!.env`) is noted, because searches obey it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from recollect.permissions.folder_contents import FindSecrets, FolderSecrets, SecretFile
from recollect.permissions.protected_paths import is_secret_name, names_secret

_MOST_ENTRIES = 200_000
_MOST_SECRETS = 1_000
_LARGEST_INDEX, _LARGEST_IGNORE = 200_000_000, 100_000
_SKIPPED = frozenset({".git", "node_modules", "site-packages", "dist-packages"})
_IGNORE_FILES = frozenset({".gitignore", ".ignore", ".rgignore", ".fdignore", ".agignore"})
_SYSTEM = ("/usr/include", "/usr/lib", "/usr/share", "/usr/src")  # what everybody has installed
_FULL_PATHS = (2, 3)  # versions of the index; the fourth shortens paths by the one before


def secret_finder(root: Path, most_entries: int = _MOST_ENTRIES) -> FindSecrets:
    """The function that looks below a folder, given as a line in `root` would name it."""

    def find_secrets(folder: str) -> FolderSecrets:
        start = root / Path(folder).expanduser()
        if os.path.normpath(start).startswith(_SYSTEM):
            return FolderSecrets()
        try:
            if not start.is_dir():
                return FolderSecrets(exists=False)
            return _Walk(start, root, most_entries).look()
        except OSError:
            return FolderSecrets(complete=False)

    return find_secrets


class _Walk:
    def __init__(self, start: Path, root: Path, most_entries: int) -> None:
        self.start, self.root, self.most_entries = start, root, most_entries
        self.entries = 0
        self.secrets: list[str] = []
        self.shown: list[str] = []  # patterns that an ignore file takes back
        self.has_option_names = False

    def look(self) -> FolderSecrets:
        complete = self._walk()
        tracked = _tracked_paths(self.start, self.root) if self.secrets else None
        files = (
            SecretFile(
                path,
                tracked is None or tracked.has(self.start / path),
                any(fnmatchcase(path.rpartition("/")[2], pattern) for pattern in self.shown),
            )
            for path in self.secrets
        )
        return FolderSecrets(tuple(files), complete, has_option_names=self.has_option_names)

    def _walk(self) -> bool:
        """Whether everything was seen."""
        waiting = [("", False)]
        while waiting:
            below, secret = waiting.pop()
            try:
                with os.scandir(self.start / below) as entries:
                    for entry in entries:
                        self.entries += 1
                        if self.entries > self.most_entries or len(self.secrets) > _MOST_SECRETS:
                            return False
                        path = f"{below}/{entry.name}" if below else entry.name
                        named = secret or is_secret_name(entry.name.lower())
                        if self._take(entry, path, named=named):
                            waiting.append((path, named))
            except (PermissionError, FileNotFoundError, NotADirectoryError):
                continue  # a command of the same user cannot read it either
        return True

    def _take(self, entry: os.DirEntry[str], path: str, *, named: bool) -> bool:
        """Note what an entry is, `named` as a secret or not; whether to look into it."""
        self.has_option_names = self.has_option_names or entry.name.startswith("-")
        folder = entry.is_dir(follow_symlinks=False)
        if not named and entry.is_symlink():
            named = names_secret(str(Path(entry.path).readlink()))
        if named and not folder:
            self.secrets.append(path)
        if entry.name in _IGNORE_FILES and not folder:
            self.shown += _shown_again(Path(entry.path))
        return folder and entry.name not in _SKIPPED


def _shown_again(file: Path) -> Iterator[str]:
    if file.is_file() and file.stat().st_size <= _LARGEST_IGNORE:
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
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
    for folder in (start, *start.parents):
        if not os.path.lexists(folder / ".git"):
            continue
        try:
            index = _find_index(folder / ".git")
            if index.stat().st_size > _LARGEST_INDEX:
                return None
            content = index.read_bytes()
        except FileNotFoundError:
            return _Index(folder, b"")
        except OSError:
            return None
        plain = int.from_bytes(content[4:8], "big") in _FULL_PATHS
        return _Index(folder, content) if plain else None
    return _Index(root, b"")


def _find_index(git: Path) -> Path:
    if git.is_dir():
        return git / "index"
    named = git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    return git.parent / named / "index"
