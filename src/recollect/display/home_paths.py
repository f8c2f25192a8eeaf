"""Paths as a user types them."""

from __future__ import annotations

import os
from pathlib import Path


def abbreviate_home(path: str | None) -> str:
    """A path with `~` for the user's home directory."""
    if not path:
        return ""
    try:
        home = str(Path.home())
    except RuntimeError:  # the user has none
        return path
    return "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
