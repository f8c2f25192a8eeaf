"""Where an export is written, and how: whole or not at all, readable by its owner only.

Another file is replaced only by `force`. In a folder, the name is the format's own; one that holds
another session is left to that.
"""

from __future__ import annotations

import contextlib
import json
import os
from functools import partial
from pathlib import Path

from recollect.errors import AlreadyExists
from recollect.store.contract import Store
from recollect.store.durable_files import publish_file, sync_directory, write_durably
from recollect.transcripts.session_export import export_session


async def compose_export(store: Store, session: str, to: str, output: str) -> tuple[Path, bytes]:
    """The file that `output`, a file or a folder, means for this session, and its content."""
    target = Path(output).expanduser()
    into_folder = target.is_dir() or output.endswith(os.sep)
    taken = partial(_holds_another_session, target) if into_folder else None
    name, data = await export_session(store, session, to, taken)
    return target / name if into_folder else target, data


def _holds_another_session(folder: Path, name: str, session: str) -> bool:
    """Whether the file exists and holds another session with the same short name."""
    try:
        return bool(json.loads((folder / name).read_bytes()).get("sessionId") != session)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError, RecursionError):
        return True


def write_export(path: Path, data: bytes, *, force: bool) -> bool:
    """Whether it was written; a file that already has this content is left alone."""
    path = path.resolve()
    if path.exists() and not path.is_file():  # a device or a pipe: written, never replaced
        path.write_bytes(data)
        return True
    if path.exists() and path.read_bytes() == data:
        return False
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    try:
        write_durably(temporary, data)
        if force:
            temporary.replace(path)
        elif not publish_file(temporary, path):
            raise AlreadyExists("another file (--force replaces it)", str(path))
    finally:
        temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # some filesystems cannot
        sync_directory(path.parent)
    return True
