"""Where data lives: one directory, which RECOLLECT_HOME moves."""

from __future__ import annotations

import os
from pathlib import Path

SETTINGS_FILE = "settings.toml"


def data_directory() -> Path:
    """The directory of all data: RECOLLECT_HOME, or the platform's place for user data."""
    given = os.environ.get("RECOLLECT_HOME")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("recollect", appauthor=False)


def store_path() -> Path:
    return data_directory() / "recollect.db"
