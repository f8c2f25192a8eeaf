"""Which folders the person trusts, kept in one small file in the home directory.

The nearest folder that was decided on decides, so a parent's trust covers what is below it, and one
folder below can be taken out. A project's hooks need more: that somebody was shown these very ones
(`approve_hooks`), because a later pull can bring others. Paths are compared after links are resolved.
A file that is missing, damaged, too large, or open to other people's writing trusts nothing; a
damaged one is never overwritten. Writing is atomic, mode 0600.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from recollect.errors import BadSettings
from recollect.settings import data_directory as home_directory
from recollect.workspace.safe_files import ReadRefused, read_inside, replace_file

TRUST_FILE = "trusted_folders.json"
MAX_FILE = 1_000_000  # bytes


class FolderTrust(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was decided of which folder; `covers` asks it without reading the file again."""

    folders: dict[str, bool] = {}
    hooks: dict[str, str] = {}  # by project: a digest of those that a person was shown

    def covers(self, folder: Path) -> bool:
        try:
            real = folder.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        for place in (real, *real.parents):
            if (decided := self.folders.get(str(place))) is not None:
                return decided
        return False


def load_trust(home: Path | None = None) -> FolderTrust:
    """What the file says; nothing is trusted where it cannot be believed."""
    try:
        return _load(_file(home))
    except BadSettings:
        return FolderTrust()


def is_trusted(folder: Path, home: Path | None = None) -> bool:
    return load_trust(home).covers(folder)


def trust_folder(folder: Path, home: Path | None = None) -> None:
    """Trust a folder and what is below it; `BadSettings` when the file is damaged."""
    _decide(folder, home, trusted=True)


def approve_hooks(project: Path, digest: str, home: Path | None = None) -> None:
    """The person was shown a project's hooks; they may run as long as they are these."""
    file = _file(home)
    kept = _load(file)
    _write(file, kept.folders, kept.hooks | {str(project): digest})


def distrust_folder(folder: Path, home: Path | None = None) -> None:
    """Trust a folder no longer, also when one above it is trusted."""
    _decide(folder, home, trusted=False)


def _decide(folder: Path, home: Path | None, *, trusted: bool) -> None:
    file, place = _file(home), str(folder.resolve())
    kept = _load(file)
    hooks = kept.hooks if trusted else {at: d for at, d in kept.hooks.items() if at != place}
    _write(file, kept.folders | {place: trusted}, hooks)


def _write(file: Path, folders: dict[str, bool], hooks: dict[str, str]) -> None:
    data = msgspec.json.encode(
        FolderTrust(dict(sorted(folders.items())), dict(sorted(hooks.items())))
    )
    replace_file(file, msgspec.json.format(data, indent=2) + b"\n", mode=0o600)


def _file(home: Path | None) -> Path:
    return (home_directory() if home is None else home) / TRUST_FILE


def _load(file: Path) -> FolderTrust:
    if not os.path.lexists(file):
        return FolderTrust()
    found = read_inside(file, (file.parent,), MAX_FILE + 1)
    if isinstance(found, ReadRefused):
        raise BadSettings(str(file), found.why)
    if found.size > MAX_FILE:
        raise BadSettings(str(file), f"it has more than {MAX_FILE:,} bytes")
    if found.writable_by_others:
        raise BadSettings(str(file), "other people can write to it")
    try:
        return msgspec.json.decode(found.data, type=FolderTrust)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadSettings(str(file), f"it is damaged ({str(error)[:200]})") from None
