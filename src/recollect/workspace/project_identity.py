"""Identifies the project that a folder belongs to.

A git repository is identified by its first commit, so a clone, a worktree or a moved folder is the
same project. Any other folder is identified by its path; by its inode and the names in it, the
store recognizes it after a rename. Nothing is written into the folder. Git runs without hooks,
monitors or a pager, with a time limit; if it fails, the path decides.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
import subprocess
from pathlib import Path

from recollect.store.contract import Project

GIT_SECONDS = 10
MAX_NAMES = 200
_QUIET = ("-c", "core.fsmonitor=", "-c", f"core.hooksPath={os.devnull}", "-c", "core.pager=cat")


def identify_project(directory: Path) -> Project:
    directory = Path(os.path.abspath(directory))  # noqa: PTH100 - keeps a link's own name
    root = git_root(directory)
    return _project(root or directory, _first_commit(root) if root else None)


def identify_named(folder: str) -> Project:
    """The project of an absolute path that a file names. Where another system's path cannot exist
    (`C:\\p` on Linux), it is the identity itself."""
    if Path(folder).is_absolute():
        return identify_project(Path(folder))
    if folder.startswith("/"):
        return Project(posixpath.normpath(folder))
    path = ntpath.normpath(folder)
    # drives have no case, and programs write both
    return Project(path[:1].upper() + path[1:])


def _project(root: Path, git: str | None) -> Project:
    real = root.resolve()
    try:
        found = os.stat(real)  # noqa: PTH116 - for device and inode
        names = sorted(entry.name for entry in os.scandir(real))[:MAX_NAMES]
        inode = f"{found.st_dev}:{found.st_ino}"
    except OSError:
        names, inode = [], ""
    return Project(str(real), git, inode, tuple(names))


def git_root(directory: Path) -> Path | None:
    """The folder of the git repository around an absolute path. Runs no git."""
    return next((f for f in (directory, *directory.parents) if (f / ".git").exists()), None)


def _first_commit(root: Path) -> str | None:
    """The oldest commit without a parent; none in a shallow clone, which does not have it."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    return next(reversed(_git(root, "rev-list", "--max-parents=0", "HEAD", "--").split()), None)


def _git(root: Path, *words: str) -> str:
    """The output of a command; empty if git fails."""
    given = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, no shell
            ["git", *_QUIET, "-C", str(root), *words],  # noqa: S607 - the user's own git
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=True,
            env=given | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("ascii", "replace").strip()
