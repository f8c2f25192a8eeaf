"""Finds git's folders in a workspace, and what their settings make git run.

A folder is git's if git would take it for one, whatever its name: a repository, a bare one, that of
a submodule or of a linked working tree. Their settings and hooks act with the user's rights as soon
as the user runs git there, outside any sandbox. Reading is bounded; links are not followed. The
standard library only, because the supervisor starts without packages.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

# Folders that are looked into, nearest first: beyond, a walk would delay each command.
MAX_FOLDERS = 3_000
MAX_GROWN_FOLDERS = 200_000  # after a command in a workspace that had fewer than these
MAX_SETTINGS = 1 << 20  # bytes
# In a folder of git's: what decides which programs git runs.
DECIDING_NAMES = ("config", "config.worktree", "hooks", "commondir")
_WITHOUT_FOLDERS = frozenset({"objects", "refs", "logs", "info", "hooks", "lfs"})
# Settings that make git run a program, or read more settings, without being asked to.
_PROGRAM_KEYS = re.compile(
    r"core\.(?:fsmonitor|sshcommand|askpass|editor|pager|gitproxy|alternaterefscommand)"
    r"|diff\.external|interactive\.difffilter|sequence\.editor"
    r"|remote\..*\.(?:vcs|receivepack|uploadpack)|(?:filter|diff|merge|credential|gpg|pager)\..*"
    r"|credential\.helper",
    re.IGNORECASE | re.DOTALL,
)
_PLACE_KEYS = re.compile(
    r"core\.hookspath|init\.templatedir|include(?:if\..*)?\.path", re.IGNORECASE | re.DOTALL
)


class GitFolders(NamedTuple):
    folders: tuple[str, ...]
    links: tuple[str, ...]  # `.git` that is a file or a link to such a folder
    complete: bool  # false: there are more folders than are looked into


def find_git_folders(
    roots: Iterable[str],
    limit: int = MAX_FOLDERS,
    open_folder: Callable[[str], bool] = lambda _folder: False,
    *,
    whole: bool = False,
) -> GitFolders:
    """`open_folder` is asked about a folder that cannot be listed; true: it can be now. `whole`: at
    last also look where git keeps its objects: any folder can be made to look like git's."""
    folders: list[str] = []
    links: list[str] = []
    waiting = deque((root, False) for root in roots)
    last: deque[tuple[str, bool]] = deque()
    seen = 0
    while (waiting or last) and seen < limit:
        folder, inside = (waiting or last).popleft()
        seen += 1
        children = _list_children(folder)
        if children is None and open_folder(folder):
            children = _list_children(folder)
        if children is None:
            continue
        below = {n for n, item in children.items() if item.is_dir(follow_symlinks=False)}
        if ".git" in children and ".git" not in below:
            links.append(f"{folder}/.git")
        # whatever these are: git follows links, and another command may put folders there
        parts = {"objects", "refs"} <= children.keys()
        looks_so = "HEAD" in children and (parts or "commondir" in children)
        if looks_so or folder.endswith("/.git"):
            folders.append(folder)
            inside = True
        if inside:
            skipped = below & _WITHOUT_FOLDERS
            below -= skipped
            last.extend((f"{folder}/{name}", False) for name in sorted(skipped) if whole)
        waiting.extend((f"{folder}/{name}", inside) for name in sorted(below))
    return GitFolders(tuple(folders), tuple(links), complete=not waiting)


def _list_children(folder: str) -> dict[str, os.DirEntry[str]] | None:
    """What is in a folder; None if it cannot be told. Without the right to search it nothing is
    known of what it lists."""
    try:
        if not os.access(folder, os.R_OK | os.X_OK):
            return None
        with os.scandir(folder) as found:
            return {item.name: item for item in found}
    except OSError:
        return None


def read_start(path: str) -> str:
    """The first bytes of a file; empty for anything else, such as a pipe that nobody writes to."""
    with suppress(OSError):
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, encoding="utf-8", errors="surrogateescape") as file:
            if stat.S_ISREG(os.fstat(opened).st_mode):
                return file.read(8192)
    return ""


def link_target(link: str) -> str:
    """The folder that a `.git` which is a file or a link leads to; empty if there is none."""
    if os.path.islink(link):
        return os.path.realpath(link)
    kind, _, path = read_start(link).partition(":")
    if kind != "gitdir" or not path.strip():
        return ""
    return os.path.realpath(os.path.join(os.path.dirname(link), path.strip()))


def programs_in_settings(folder: str, roots: tuple[str, ...]) -> Iterator[str]:
    """Paths inside the roots that the settings in force for a working folder make git run, or read
    as settings: `core.hooksPath`, `include.path`, a script that is a filter. Folders of hooks and
    files of settings count also while they do not exist."""
    git = f"{folder}/.git"
    bases = dict.fromkeys((folder, git, link_target(git) or git))
    for key, value in read_settings(("-C", folder, "config", "--includes")):
        decides = _PLACE_KEYS.fullmatch(key) is not None
        if decides or _PROGRAM_KEYS.fullmatch(key):
            for word in _words(value):
                for path in {os.path.realpath(os.path.join(base, word)) for base in bases}:
                    inside = any(path.startswith(f"{root}/") for root in roots)
                    if inside and ((decides and word == value) or os.path.isfile(path)):
                        yield path


def read_settings(arguments: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Keys and values as git itself reads them; reading settings runs nothing."""
    environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": os.path.expanduser("~")}
    line = ("git", *arguments, "--list", "-z")
    try:
        ran = subprocess.run(  # noqa: S603 - git of the system, with words of our own
            line,
            env=environment,
            capture_output=True,
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    for item in ran.stdout[:MAX_SETTINGS].decode("utf-8", "surrogateescape").split("\0"):
        key, _, value = item.partition("\n")
        if key:
            yield key, value


def _words(value: str) -> list[str]:
    value = value.removeprefix("!").strip()
    try:
        words = shlex.split(value)
    except ValueError:
        words = value.split()
    return [word for word in dict.fromkeys((value, *words)) if word and "\0" not in word]
