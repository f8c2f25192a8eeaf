"""Paths as a user types them."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path


def abbreviate_home(path: str | None) -> str:
    """A path with `~` for the user's home directory."""
    if not path:
        return ""
    home = _home()
    return "~" + path[len(home) :] if home and _is_in(path, home) else path


def abbreviate_paths(text: str, folder: str) -> str:
    """A text whose paths are as a user would type them who works in this folder."""
    text = _path_expression(folder).sub(lambda match: "" if match[1] else ".", text)
    home = _home()
    return _path_expression(home).sub(lambda match: f"~{match[1]}", text) if home else text


def _home() -> str:
    try:
        return str(Path.home())
    except RuntimeError:  # the user has none
        return ""


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)


@lru_cache(4)
def _path_expression(folder: str) -> re.Pattern[str]:
    """This folder, where a path begins, and the slash after it if a name follows."""
    return re.compile(rf"(?<![\w./~-]){re.escape(folder)}(/(?=[^/\s])|(?![\w./-]))")
