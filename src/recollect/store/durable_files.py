"""Writes files so that a crash leaves the whole file or none, and a name that is taken stays."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """A new file, readable only by the user, on disk when this returns."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def publish_file(temporary: Path, path: Path) -> bool:
    """Whether the file got its name: a link fails where a rename would replace."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError:  # a filesystem without links
        if os.path.lexists(path):
            return False
        temporary.replace(path)
    return True


def sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
