"""The folders that a session works in: where the user stands, the project around it, and others.

Relative paths begin in `cwd`. Everything in `roots` may be read; permissions, protected files and
backups are those of the roots. A session's log records which folders a model has been told, so that
a change of folder, or a project that was moved, is stated once.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from recollect.entries import Message, Text
from recollect.errors import BadInput
from recollect.settings import data_directory
from recollect.workspace.untrusted_text import one_line

_FOLDERS = "folders"
# sessions from before folders were recorded name one directory in their first message
_NAMED = re.compile(r"^I'm currently working in the directory: (/.{0,4000})$", re.MULTILINE)


class WorkingFolders(msgspec.Struct, frozen=True):
    cwd: Path  # in the root
    root: Path  # of the project
    added: tuple[Path, ...] = ()  # further directories, outside the root

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders whose files may be touched."""
        return self.root, *self.added

    @property
    def directories(self) -> tuple[Path, ...]:
        """The working directories, as a model is told them."""
        return self.cwd, *self.added

    def record(self) -> dict[str, Any]:
        """For the `extra` of a message that states these folders."""
        added = {"added": [str(path) for path in self.added]} if self.added else {}
        return {_FOLDERS: {"cwd": str(self.cwd), "root": str(self.root), **added}}


def add_directories(
    folders: WorkingFolders, given: Sequence[str], home: Path | None = None
) -> WorkingFolders:
    """The folders with further directories; those that are already inside are left out."""
    added = list(folders.added)
    own = data_directory(home).resolve()
    for name in given:
        path = _existing_folder(folders.cwd, name)
        if path == Path(path.anchor) or path.is_relative_to(own):
            raise BadInput(f"{one_line(str(path))} cannot be a working directory; name another")
        if not any(path.is_relative_to(root) for root in (folders.root, *added)):
            added.append(path)
    return msgspec.structs.replace(folders, added=tuple(added))


def _existing_folder(cwd: Path, name: str) -> Path:
    try:
        path = (cwd / os.path.expanduser(name)).resolve()  # noqa: PTH111 - a name may be `~nobody`
        found = path.is_dir()
    except (OSError, RuntimeError, ValueError):
        path, found = cwd, False
    if not name or not found:
        raise BadInput(f"there is no folder {one_line(name)!r}; name a folder that exists")
    return path


# --- what a session has been told ----------------------------------------------------------------


def stated_folders(message: Message) -> WorkingFolders | None:
    """The folders that a message of the program states."""
    if not message.context or message.role != "user":
        return None
    if f'"{_FOLDERS}"' in message.extra:
        return _parse_record(message.extra)
    if message.context == "initial" and message.parts and isinstance(message.parts[0], Text):
        named = _NAMED.search(message.parts[0].text, 0, 10_000)
        return WorkingFolders(Path(named[1]), Path(named[1])) if named else None
    return None


def _parse_record(extra: str) -> WorkingFolders | None:
    try:
        # json, not msgspec: a folder's name may have bytes that are not UTF-8
        record = json.loads(extra)[_FOLDERS]
        cwd, root, added = record["cwd"], record["root"], record.get("added", [])
        return WorkingFolders(Path(cwd), Path(root), tuple(map(Path, added)))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return None  # another program's message


def former_roots(messages: Iterable[Message]) -> tuple[Path, ...]:
    """Every project root that these messages state, the latest first."""
    stated = [found.root for message in messages if (found := stated_folders(message))]
    return tuple(dict.fromkeys(reversed(stated)))


def folder_change_line(first: WorkingFolders, last: WorkingFolders, now: WorkingFolders) -> str:
    """What a model is told when a session goes on elsewhere; empty if it has been told already."""
    gone = ", ".join(_shown(path) for path in last.added if path not in now.added)
    withdrawn = f"No longer working directories, and closed to tools: {gone}." if gone else ""
    if (now.cwd, now.root) == (last.cwd, last.root):
        return withdrawn
    began = f"this session began in {_shown(first.cwd)}"
    if now.cwd == first.cwd:
        began = "as when this session began"
    line = f"The working directory is now {_shown(now.cwd)}; {began}."
    if now.root != last.root:
        line += (
            f" The project's root is now {_shown(now.root)}, no longer {_shown(last.root)}: "
            "files named by their old paths are there."
        )
    return f"{line} {withdrawn}".rstrip()


def _shown(path: Path) -> str:
    return one_line(str(path), 4_000)
