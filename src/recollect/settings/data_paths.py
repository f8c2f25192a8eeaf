"""Where data is stored: one directory, which RECOLLECT_HOME moves."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

SETTINGS_FILE = "settings.toml"


def data_directory(home: Path | None = None) -> Path:
    """`home` if it is given, else RECOLLECT_HOME, or the platform's directory for user data."""
    if home is not None:
        return home
    given = os.environ.get("RECOLLECT_HOME")
    return Path(given).expanduser() if given else user_data_path("recollect", appauthor=False)


def store_path() -> Path:
    return data_directory() / "recollect.db"
