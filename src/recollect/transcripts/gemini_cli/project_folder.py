"""Which folder a session file of Gemini CLI belongs to.

The file itself has only a hash of the folder's path. Beside the folder `chats`, newer versions keep
the path in `.project_root`; a list of all projects is in `projects.json`, two folders above.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from recollect.errors import CannotImport
from recollect.transcripts.json_values import object_or_empty, string_or_empty
from recollect.transcripts.source_file import read_small_file
from recollect.transcripts.transcript import (
    ReadTranscript,
    TranscriptBundle,
    TranscriptFile,
    is_folder_path,
)

_ROOT_FILE, _LIST_FILE = ".project_root", "projects.json"
_ROOT_BYTES = 4_096
_LIST_BYTES = 4 * 1024 * 1024
_LEVELS = 2  # a subagent's file is one folder deeper


def hash_path(path: str) -> str:
    """As Gemini CLI identifies a project."""
    return hashlib.sha256(path.encode("utf-8", "replace")).hexdigest()


def is_in_project(path: Path, project: str) -> bool:
    """Whether a session file is of the project with this path."""
    wanted = hash_path(project)
    if path.parent.parent.name == wanted:
        return True
    return project in _named_folders(path, wanted)


def with_project_folder(
    file: TranscriptFile, path: Path, _read: ReadTranscript
) -> TranscriptBundle:
    """The session, with the folder that the files around it name."""
    transcript = file.transcript
    found = next(_named_folders(path, transcript.folder_hash), "")
    named = msgspec.structs.replace(transcript, folder=found) if found else transcript
    return TranscriptBundle(file._replace(transcript=named))


def _named_folders(path: Path, folder_hash: str) -> Iterator[str]:
    for folder in path.absolute().parents[1 : 1 + _LEVELS]:
        root = _read_small(folder / _ROOT_FILE, _ROOT_BYTES).strip()
        if _is_path(root):
            yield root
        projects: object = None
        with suppress(ValueError, RecursionError):
            projects = json.loads(_read_small(folder.parent.parent / _LIST_FILE, _LIST_BYTES))
        for root, name in object_or_empty(object_or_empty(projects).get("projects")).items():
            is_it = string_or_empty(name) == folder.name or hash_path(root) == folder_hash
            if is_it and _is_path(root):
                yield root


def _read_small(file: Path, limit: int) -> str:
    try:
        return read_small_file(file, limit).decode("utf-8", "replace") if file.is_file() else ""
    except (CannotImport, OSError, ValueError):
        return ""


def _is_path(text: str) -> bool:
    return text.isprintable() and is_folder_path(text)
