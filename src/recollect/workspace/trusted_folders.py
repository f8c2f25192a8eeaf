"""Which folders the user trusts, stored in one small file in the data directory.

The nearest folder with a decision decides, so trust covers all folders below, and one of them can
be excepted. A project's hooks need more: the user must have approved exactly these
(`approve_hooks`), because a later pull can bring others. Links are resolved before paths are
compared. A file that is missing, damaged, too large, or writable by other users trusts nothing; a
damaged one is never overwritten. Writing is atomic, mode 0600.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from recollect.errors import BadSettings
from recollect.settings import data_directory
from recollect.workspace.safe_files import ReadRefused, read_inside, replace_file

TRUST_FILE = "trusted_folders.json"
MAX_FILE = 1_000_000  # bytes


class FolderTrust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's decision for each folder."""

    folders: dict[str, bool] = {}
    hooks: dict[str, str] = {}  # by project: a digest of the approved ones

    def covers(self, folder: Path) -> bool:
        try:
            real = folder.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        for parent in (real, *real.parents):
            if (decision := self.folders.get(str(parent))) is not None:
                return decision
        return False


def load_trust(home: Path | None = None) -> FolderTrust:
    """The decisions in the file; none if the file cannot be used."""
    try:
        return _load(data_directory(home) / TRUST_FILE)
    except BadSettings:
        return FolderTrust()


def is_trusted(folder: Path, home: Path | None = None) -> bool:
    return load_trust(home).covers(folder)


def trust_folder(folder: Path, home: Path | None = None) -> None:
    """Trust a folder and all folders below it; `BadSettings` if the file is damaged."""
    _update(home, {str(folder.resolve()): True}, {})


def approve_hooks(project: Path, digest: str, home: Path | None = None) -> None:
    """Record that the user has approved a project's hooks; they run until they change."""
    _update(home, {}, {str(project): digest})


def distrust_folder(folder: Path, home: Path | None = None) -> None:
    """No longer trust a folder or its hooks, even if a folder above it is trusted."""
    place = str(folder.resolve())
    _update(home, {place: False}, {place: ""})


def _update(home: Path | None, folders: dict[str, bool], hooks: dict[str, str]) -> None:
    """Write the decisions with these added; an empty digest removes one."""
    file = data_directory(home) / TRUST_FILE
    kept = _load(file)
    approved = {at: digest for at, digest in (kept.hooks | hooks).items() if digest}
    data = msgspec.json.encode(FolderTrust(kept.folders | folders, approved), order="sorted")
    replace_file(file, msgspec.json.format(data, indent=2) + b"\n", mode=0o600)


def _load(file: Path) -> FolderTrust:
    if not os.path.lexists(file):
        return FolderTrust()
    found = read_inside(file, (file.parent,), MAX_FILE)
    if isinstance(found, ReadRefused):
        raise BadSettings(str(file), found.why)
    if found.writable_by_others:
        raise BadSettings(str(file), "other users can write to it")
    try:
        return msgspec.json.decode(found.data, type=FolderTrust)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadSettings(str(file), f"it is damaged ({str(error)[:200]})") from None
