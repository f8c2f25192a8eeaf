"""Keeps what was taken out of a workspace, because it may be the user's, in the data directory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from recollect.settings import data_directory
from recollect.store.ids import new_id

REPLACED = "replaced"  # below the data directory


def keep_replaced(aside: str, repairs: Iterable[str]) -> Iterator[str]:
    """Move what lies in a session's folder to the data directory; the sentences with its path."""
    kept = data_directory() / REPLACED / new_id()
    moved = False
    with suppress(OSError):
        if any(Path(aside).iterdir()):
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.move(aside, kept)
            moved = True
    for line in repairs:
        yield line.replace(aside, str(kept)) if moved else line
