"""Which project a folder is.

A git repository is known by its first commit, so a clone, a worktree or a moved folder is the same
project. Any other folder is known by its path; its inode and the names in it let the store
recognise it after a rename. Nothing is written into the folder. Git is run without hooks,
monitors or a pager, bounded in time; where it does not answer, the path decides.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from recollect.store.contract import Project

GIT_SECONDS = 10
NAMES = 200
_QUIET = ("-c", "core.fsmonitor=", "-c", f"core.hooksPath={os.devnull}", "-c", "core.pager=cat")


def identify(directory: Path) -> Project:
    directory = Path(os.path.abspath(directory))  # noqa: PTH100 - a link's own name is kept
    root = _git_root(directory)
    return _project(root or directory, _first_commit(root) if root else None)


def _project(root: Path, git: str | None) -> Project:
    real = root.resolve()
    try:
        found = os.stat(real)  # noqa: PTH116 - device and inode are what is wanted
        names = sorted(entry.name for entry in os.scandir(real))[:NAMES]
        inode = f"{found.st_dev}:{found.st_ino}"
    except OSError:
        names, inode = [], ""
    return Project(str(real), git, inode, tuple(names))


def _git_root(directory: Path) -> Path | None:
    for folder in (directory, *directory.parents):
        if (folder / ".git").exists():
            return folder
    return None


def _first_commit(root: Path) -> str | None:
    """The oldest commit without a parent; none in a shallow clone, where it is not known."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    roots = _git(root, "rev-list", "--max-parents=0", "HEAD", "--")
    return roots.split()[-1] if roots else None


def _git(root: Path, *arguments: str) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, no shell
            ["git", *_QUIET, "-C", str(root), *arguments],  # noqa: S607 - the user's own git
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
            env=environment | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("ascii", "replace").strip() if done.returncode == 0 else ""
