"""What the user approves of a project's hooks: their settings, and the files that they name.

A hook runs with the user's rights, outside every sandbox, and its script often lies in the project,
where an agent works. So the content of each file of the project that a hook's command names is part
of the approval. Programs outside the project are the user's own. What a named file loads in turn is
not followed.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from recollect.settings import HookCommand

MAX_WORDS = 200  # of a command that are looked at
MAX_FILE = 20_000_000  # bytes; of a larger file the time of its last change counts
_FORMAT = "2:"  # the first one had no files in it
_NAME = re.compile(r"[^\s'\"`=:,;&|<>(){}$]{1,1000}")  # also inside `sh -c 'exec ./check'`


class HookFile(msgspec.Struct, frozen=True):
    """A file of the project that a hook's command names."""

    path: str  # from the project's root
    size: int
    digest: str


def find_hook_files(command: Sequence[str], root: Path) -> tuple[HookFile, ...]:
    """The files below a project's root that the words of a command name, as they are now."""
    words = [word for text in command for word in (text, *_NAME.findall(text))]
    found: dict[str, HookFile] = {}
    for word in dict.fromkeys(words[:MAX_WORDS]):
        for file in _read_named(word, root):
            found[file.path] = file
    return tuple(found.values())


def digest_hook_files(command: Sequence[str], root: Path) -> str:
    return sha256(msgspec.json.encode(find_hook_files(command, root))).hexdigest()


def digest_hooks(hooks: Sequence[HookCommand], root: Path) -> str:
    """Changes with every change of the hooks, or of a file of the project that they name."""
    files = [find_hook_files(hook.words, root) for hook in hooks]
    return _FORMAT + sha256(msgspec.json.encode((hooks, files))).hexdigest()


def _read_named(word: str, root: Path) -> Iterator[HookFile]:
    with suppress(OSError, ValueError):
        path = Path(os.path.normpath(root / word))
        real = Path(os.path.realpath(path))
        inside = next((each for each in (path, real) if each.is_relative_to(root)), None)
        if inside is None:
            return
        info = real.stat()
        if stat.S_ISREG(info.st_mode):
            # a link can be made to lead elsewhere, to a file of the same content
            digest = sha256(f"{real}\0{_content_digest(real, info)}".encode()).hexdigest()
            name = inside.relative_to(root).as_posix()
            yield HookFile(os.fsencode(name).decode("utf-8", "replace"), info.st_size, digest)


def _content_digest(file: Path, info: os.stat_result) -> str:
    if info.st_size > MAX_FILE:
        return f"{info.st_size} {info.st_mtime_ns} {info.st_ino}"
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as opened:
        return sha256(opened.read(MAX_FILE + 1)).hexdigest()
