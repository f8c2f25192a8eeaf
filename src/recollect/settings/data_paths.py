"""Where data is stored: one directory, private to the user, which RECOLLECT_HOME moves."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from platformdirs import user_data_path

from recollect.errors import CannotOpen

SETTINGS_FILE = "settings.toml"


def data_directory(home: Path | None = None) -> Path:
    """`home` if it is given, else RECOLLECT_HOME, or the platform's directory for user data."""
    if home is not None:
        return home
    given = os.environ.get("RECOLLECT_HOME")
    try:
        path = Path(given).expanduser() if given else user_data_path("recollect", appauthor=False)
    except RuntimeError:  # `~` in RECOLLECT_HOME, and the user has no home directory
        path = Path(given or "~")
    if str(path).startswith("~"):
        raise CannotOpen(str(path), "you have no home directory; set HOME or RECOLLECT_HOME")
    return path


def make_private_folder(folder: Path) -> None:
    """Create a folder, and those above it that are missing, for the user alone.

    `mkdir(mode=…, parents=True)` gives the mode to the last of them only. A data directory of the
    platform that an earlier version, or another program, left open to others is closed; one that
    RECOLLECT_HOME names may have other purposes, and `recollect doctor` names it instead.
    """
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
    if not os.environ.get("RECOLLECT_HOME"):
        own = data_directory()
        if own in (folder, *folder.parents) and is_open_to_others(own):
            with suppress(OSError):  # another user's
                own.chmod(0o700)


def is_open_to_others(path: Path) -> bool:
    """Whether other users may read or change this file or folder."""
    return os.name == "posix" and bool(path.stat().st_mode & 0o077)


def store_path() -> Path:
    return data_directory() / "recollect.db"
