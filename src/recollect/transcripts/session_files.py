"""The session files below a folder, in order.

Only looking: names and the first bytes. Links to folders are not followed, hidden folders are left
out, and depth, number and size are bounded; what a bound left out is said. A subagent's file that
belongs to a session beside it comes with that session.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from recollect.errors import CannotImport
from recollect.transcripts.source_file import read_start

MAX_DEPTH = 20
MAX_NAMES = 200_000  # looked at below one folder
MAX_FILE_BYTES = 512 * 1024**2  # a larger file must be named
_SUFFIXES = (".json", ".jsonl")
_START_BYTES = 65_536
_SKIPPED_FOLDERS = ("node_modules", "__pycache__")


class FolderFiles(NamedTuple):
    files: tuple[Path, ...]  # that may hold sessions
    others: tuple[Path, ...]  # JSON by their names only
    failures: tuple[str, ...]  # folders that could not be read, files that were left out


class _Walk:
    """What was found so far."""

    def __init__(self) -> None:
        self.names = 0
        self.files: list[Path] = []
        self.others: list[Path] = []
        self.failures: list[str] = []


def find_session_files(folder: Path) -> FolderFiles:
    walk = _Walk()
    _look_into(folder, walk, 0)
    return FolderFiles(tuple(walk.files), tuple(walk.others), tuple(walk.failures))


def _look_into(folder: Path, walk: _Walk, depth: int) -> None:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        walk.failures.append(f"cannot read the folder {folder}: {error.strerror or error}")
        return
    walk.names += len(entries)
    for entry in entries:
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS:
                continue
            if depth >= MAX_DEPTH or walk.names > MAX_NAMES:
                limits = f"{MAX_DEPTH} levels or {MAX_NAMES:,} names"
                walk.failures.append(f"{path} was left out, beyond {limits}; import it by its name")
            else:
                _look_into(path, walk, depth + 1)
        elif path.suffix in _SUFFIXES and entry.is_file() and not _comes_with_another(path):
            _sort_file(path, entry.stat().st_size, walk)


def _sort_file(path: Path, size: int, walk: _Walk) -> None:
    if size > MAX_FILE_BYTES:
        limit = f"it has {size:,} bytes, the limit in a folder is {MAX_FILE_BYTES:,}"
        walk.failures.append(f"cannot import {path}: {limit}; import it by its name")
        return
    try:
        may_hold_records = b"{" in read_start(path, _START_BYTES)
    except CannotImport as error:
        walk.failures.append(str(error))
    else:
        (walk.files if may_hold_records else walk.others).append(path)


def _comes_with_another(path: Path) -> bool:
    """Whether it is a file of a subagent, or about one, that the session's own file brings."""
    if not fnmatchcase(path.name, "agent-*.json*"):
        return False
    above = path.parent.parent
    main = above.with_name(f"{above.name}.jsonl")
    return path.name.endswith(".meta.json") or (path.parent.name == "subagents" and main.is_file())
