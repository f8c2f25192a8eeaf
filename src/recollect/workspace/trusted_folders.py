"""What the user trusts of which folder, stored in one small file in the data directory.

Memory files, settings and hooks are decided apart. For memory and settings the nearest folder with
a decision decides, so trust covers all folders below, and one of them can be excepted. Hooks start
programs: the user must have approved exactly these, with the files that they name
(`hook_approval`), because a later pull can bring others. Links are resolved before paths are
compared. A file that is missing, damaged, too large, or writable by other users trusts nothing; a
damaged one is never overwritten. Writing is atomic, mode 0600.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from recollect.errors import BadSettings
from recollect.settings import data_directory
from recollect.workspace.safe_files import ReadRefused, read_inside, replace_file

TRUST_FILE = "trusted_folders.json"
MAX_FILE = 1_000_000  # bytes
TrustPart: TypeAlias = Literal["memory", "settings", "hooks"]
TRUST_PARTS: tuple[TrustPart, ...] = get_args(TrustPart)
_BY_FOLDER: tuple[TrustPart, ...] = ("memory", "settings")


class FolderTrust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The user's decisions for each folder."""

    folders: dict[str, bool] = {}  # whose memory files are read
    # whose settings are used; none: the file is from before they were apart
    settings: dict[str, bool] | None = None
    hooks: dict[str, str] = {}  # by project: the digest of the approved ones

    def covers(self, folder: Path) -> bool:
        """Whether the memory files of a folder are trusted."""
        return _nearest(self.folders, folder)

    def covers_settings(self, folder: Path) -> bool:
        return _nearest(self.settings_decisions, folder)

    @property
    def settings_decisions(self) -> dict[str, bool]:
        return self.folders if self.settings is None else self.settings

    def approves(self, project: Path, digest: str) -> bool:
        """Whether exactly these hooks of a project were approved."""
        return bool(digest) and self.hooks.get(str(project)) == digest


def _nearest(decisions: Mapping[str, bool], folder: Path) -> bool:
    try:
        real = folder.resolve()
    except (OSError, RuntimeError, ValueError):
        return False
    for parent in (real, *real.parents):
        if (decision := decisions.get(str(parent))) is not None:
            return decision
    return False


def load_trust(home: Path | None = None) -> FolderTrust:
    """The decisions in the file; none if the file cannot be used."""
    try:
        return _load(data_directory(home) / TRUST_FILE)
    except BadSettings:
        return FolderTrust()


def is_trusted(folder: Path, home: Path | None = None) -> bool:
    """Whether the memory files of a folder are trusted."""
    return load_trust(home).covers(folder)


def trust_folder(
    folder: Path, home: Path | None = None, parts: Collection[TrustPart] = _BY_FOLDER
) -> None:
    """Trust the memory or the settings of a folder and of all folders below it; `BadSettings` if
    the file is damaged."""
    _decide(folder, home, parts, trusted=True)


def approve_hooks(project: Path, digest: str, home: Path | None = None) -> None:
    """Record that the user has approved a project's hooks; they run until they change."""
    file = data_directory(home) / TRUST_FILE
    known = _load(file)
    _save(file, msgspec.structs.replace(known, hooks={**known.hooks, str(project): digest}))


def distrust_folder(
    folder: Path, home: Path | None = None, parts: Collection[TrustPart] = TRUST_PARTS
) -> None:
    """No longer trust a folder, even if a folder above it is trusted. Its hooks, and those of every
    project below it, no longer run."""
    _decide(folder, home, parts, trusted=False)


def _decide(
    folder: Path, home: Path | None, parts: Collection[TrustPart], *, trusted: bool
) -> None:
    file, place = data_directory(home) / TRUST_FILE, folder.resolve()
    known = _load(file)
    folders, settings, hooks = known.folders, known.settings_decisions, known.hooks
    if "memory" in parts:
        folders = {**folders, str(place): trusted}
    if "settings" in parts:
        settings = {**settings, str(place): trusted}
    if "hooks" in parts and not trusted:
        hooks = {at: each for at, each in hooks.items() if not Path(at).is_relative_to(place)}
    _save(file, FolderTrust(folders, settings, hooks))


def _save(file: Path, trust: FolderTrust) -> None:
    trust = msgspec.structs.replace(trust, settings=trust.settings_decisions)
    data = msgspec.json.encode(trust, order="sorted")
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
