"""Context windows learned from providers' errors, cached for each model.

If the file cannot be read or written, the window is learned again from the next error.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

from recollect.errors import CannotWrite
from recollect.settings import data_directory
from recollect.workspace.safe_files import ReadRefused, read_inside, replace_file

WINDOWS_FILE = "windows.json"
MAX_MODELS, MAX_FILE = 500, 200_000
MIN_WINDOW = 500  # tokens; a smaller number is not a context window


def learned_window(model: str, home: Path | None = None) -> int | None:
    """The context window of this model that an error stated."""
    return _load(data_directory(home) / WINDOWS_FILE).get(model)


def remember_window(model: str, window: int, home: Path | None = None) -> None:
    if window < MIN_WINDOW:
        return
    file = data_directory(home) / WINDOWS_FILE
    known = {name: size for name, size in _load(file).items() if name != model}
    newest = list(known.items())[-(MAX_MODELS - 1) :]
    with suppress(CannotWrite):
        replace_file(file, msgspec.json.encode({**dict(newest), model: window}), mode=0o600)


def _load(file: Path) -> dict[str, int]:
    """What the file says; it is read again when it has changed."""
    try:
        found = file.stat()
    except OSError:
        return {}
    return _read(file, (found.st_mtime_ns, found.st_ino, found.st_size))


@lru_cache(8)
def _read(file: Path, _stamp: tuple[int, int, int]) -> dict[str, int]:
    found = read_inside(file, (file.parent,), MAX_FILE)
    if isinstance(found, ReadRefused):
        return {}
    try:
        known = msgspec.json.decode(found.data, type=dict[str, int])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return {model: window for model, window in known.items() if window >= MIN_WINDOW}
