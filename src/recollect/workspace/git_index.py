"""What the index of a repository says, read without git: no setting of a repository runs anything.

Only regular files of a bounded size are read, whatever a name of git's leads to.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress

_LARGEST = 200_000_000
_LONGEST_LINK = 10_000


def find_repository(folder: str) -> str:
    """The nearest folder, this one or one above it, that has a `.git`; empty if there is none."""
    while True:
        if os.path.lexists(f"{folder}/.git"):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def read_index(repository: str) -> bytes | None:
    """The bytes of the index, and of the one that it shares with others; None if it cannot be
    read. Empty: there is none."""
    folder = _git_folder(repository)
    try:
        names = os.listdir(folder)
        files = [name for name in names if name == "index" or name.startswith("sharedindex.")]
        pieces = [read_regular(f"{folder}/{name}", _LARGEST) for name in sorted(files)]
    except (OSError, ValueError):
        return None
    return None if None in pieces else b"\0".join(filter(None, pieces))


def has_content(index: bytes, content: bytes) -> bool:
    """Whether an index, of any version, has a file of exactly this content. Line breaks may be
    those of another system. The hash of a content cannot be written into an index by a program
    that may not read the content."""
    texts = {content, content.replace(b"\r\n", b"\n")}
    return any(digest in index for text in texts for digest in _object_ids(text))


def _object_ids(content: bytes) -> tuple[bytes, bytes]:
    blob = b"blob %d\0%s" % (len(content), content)
    return hashlib.sha1(blob, usedforsecurity=False).digest(), hashlib.sha256(blob).digest()


def _git_folder(repository: str) -> str:
    """Where `.git` is, or leads to from a working tree or a submodule."""
    path = f"{repository}/.git"
    with suppress(OSError, ValueError):
        if (text := read_regular(path, _LONGEST_LINK)) is not None:
            named = os.fsdecode(text).removeprefix("gitdir:").strip()
            return os.path.join(repository, named)
    return path


def read_regular(path: str, limit: int) -> bytes | None:
    """The content of a regular file of at most this size; None for anything else. A pipe or a
    device in its place is not waited for."""
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
            return None
        with os.fdopen(file, "rb", closefd=False) as opened:
            data = opened.read(limit + 1)
        return data if len(data) <= limit else None
    finally:
        os.close(file)
