"""Names in the workspace that commands may read but not write, replace or create.

A file written there would later act with the user's rights, outside the sandbox. A name that does
not exist is occupied by a placeholder, which git does not see. The last command that needs a
placeholder removes it, and only while it is empty; after a crash the next command does.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

Placeholder: TypeAlias = Literal["folder", "socket", "empty", "itself"]


class GuardedName(NamedTuple):
    """A path below the workspace, and what occupies it while it does not exist.

    That is an empty folder; a socket, which nobody can open and git skips; or a file that means the
    same to git as none.
    """

    path: str
    placeholder: Placeholder


GUARDED_NAMES = (
    GuardedName(".recollect", "folder"),
    GuardedName("AGENTS.md", "socket"),
    GuardedName("GEMINI.md", "socket"),
    GuardedName("CLAUDE.md", "socket"),
    GuardedName(".git/config", "empty"),
    GuardedName(".git/config.worktree", "empty"),
    GuardedName(".git/hooks", "folder"),
    # with another folder named here git would take its settings and hooks from there
    GuardedName(".git/commondir", "itself"),
)
_LOCK_SECONDS = 2.0
_PLACEHOLDER_BYTES = {"empty": b"", "itself": b".\n"}


class HeldName(NamedTuple):
    """Where a guard is held: its path, or the first missing or odd name on the way there."""

    path: str
    found: Literal["missing", "link", "socket", "other"]
    placeholder: Placeholder
    pins: tuple[str, ...]  # folders on the way: as mounts they cannot be renamed away
    link: str = ""


@contextmanager
def hold_names(
    root: str, guards: Iterable[GuardedName], repairs: list[str]
) -> Iterator[tuple[HeldName, ...]]:
    """Keep every guarded name occupied while the block lasts.

    All who hold names in the same workspace share a lock on its folder; the last one removes the
    placeholders. Nobody waits long for the lock: a command may never give it back.
    """
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _share_lock(folder)
        made: set[str] = set()
        held = tuple(dict.fromkeys(_hold_name(root, guard, made) for guard in guards))
        try:
            yield tuple(name for name in held if name.found != "missing")
        finally:
            repairs += filter(None, map(_restore_link, held))
            # a command could have created what we could not
            missing = [name.path for name in held if name.found == "missing"]
            unguarded = [path for path in missing if os.access(Path(path).parent, os.W_OK)]
            repairs += [f"{path} could not be guarded" for path in unguarded]
            with suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for name in reversed(held):
                    _remove_placeholder(name, made)
    finally:
        os.close(folder)


def _share_lock(folder: int) -> None:
    """Share the lock; who has it alone is removing placeholders, which takes no time."""
    until = time.monotonic() + _LOCK_SECONDS
    while time.monotonic() < until:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        time.sleep(0.005)


def _hold_name(root: str, guard: GuardedName, made: set[str]) -> HeldName:
    name = _locate(root, guard)
    if name.found != "missing":
        return name
    with suppress(OSError):  # if we cannot create it here, no command in the sandbox can
        _create_placeholder(name)
        made.add(name.path)
    return _locate(root, guard)


def _create_placeholder(name: HeldName) -> None:
    path = Path(name.path)
    if name.placeholder in _PLACEHOLDER_BYTES:
        with path.open("xb") as file:
            file.write(_PLACEHOLDER_BYTES[name.placeholder])
    elif name.placeholder == "folder":
        path.mkdir()
    else:
        try:
            os.mknod(path, stat.S_IFSOCK | 0o600)
        except OSError:
            path.mkdir()  # some filesystems have no sockets


def _locate(root: str, guard: GuardedName) -> HeldName:
    path, names = root, guard.path.split("/")
    pins: list[str] = []
    for name in names:
        path = f"{path}/{name}"
        last = name is names[-1]
        placeholder = guard.placeholder if last else "folder"
        if not (mode := file_mode(path)):
            return HeldName(path, "missing", placeholder, tuple(pins))
        if stat.S_ISLNK(mode):
            return HeldName(path, "link", placeholder, tuple(pins), os.readlink(path))  # noqa: PTH115
        if last or not stat.S_ISDIR(mode) or _is_empty(path):
            found: Literal["socket", "other"] = "socket" if stat.S_ISSOCK(mode) else "other"
            return HeldName(path, found, placeholder, tuple(pins))
        pins.append(path)
    raise AssertionError("a guarded name is not empty")


def _is_empty(folder: str) -> bool:
    with suppress(OSError):
        return not os.listdir(folder)  # noqa: PTH208
    return False


def _remove_placeholder(name: HeldName, made: set[str]) -> None:
    """Remove a placeholder: a folder only if it is empty, a file only if it is as we made it."""
    path = Path(name.path)
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISSOCK(mode) and name.placeholder == "socket":
            path.unlink()
        elif stat.S_ISDIR(mode) and (name.path in made or name.placeholder == "folder"):
            path.rmdir()
        elif stat.S_ISREG(mode) and (name.path in made or name.placeholder == "itself"):
            words = _PLACEHOLDER_BYTES.get(name.placeholder)
            if path.stat().st_size < 9 and path.read_bytes() == words:
                path.unlink()


def _restore_link(name: HeldName) -> str:
    """Put a replaced link back, and say so: links cannot be mounted over."""
    if name.found != "link":
        return ""
    with suppress(OSError):
        if os.readlink(name.path) == name.link:  # noqa: PTH115
            return ""
    fresh = Path(f"{name.path}.recollect-{os.getpid()}")
    try:
        fresh.symlink_to(name.link)
        fresh.replace(name.path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        return f"{name.path} was a link to {name.link} and cannot be put back: {error.strerror}"
    return f"{name.path} was replaced and is a link to {name.link} again"


def file_mode(path: str) -> int:
    """The mode of what is there; 0 for nothing, and for what we may not look at."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0
