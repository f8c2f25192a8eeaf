"""Where data is stored: one directory, which RECOLLECT_HOME moves."""

from __future__ import annotations

import os
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


def store_path() -> Path:
    return data_directory() / "recollect.db"
