"""Identifies the project that a folder belongs to.

A git repository is identified by its first commit, so a clone, a worktree or a moved folder is the
same project. Any other folder is identified by its path; by its inode and the names in it, the
store recognizes it after a rename. Nothing is written into the folder. Git runs without hooks,
monitors or a pager, with a time limit; if it fails, the path decides.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

from recollect.store.contract import Project

GIT_SECONDS = 10
MAX_NAMES = 200
_QUIET = ("-c", "core.fsmonitor=", "-c", f"core.hooksPath={os.devnull}", "-c", "core.pager=cat")
_IS_SHALLOW = ("rev-parse", "--is-shallow-repository")
_ROOTS = ("rev-list", "--max-parents=0", "HEAD", "--")


def identify_project(directory: Path) -> Project:
    directory = Path(os.path.abspath(directory))  # noqa: PTH100 - keeps a link's own name
    root = _git_root(directory)
    return _project(root or directory, _first_commit(root) if root else None)


def _project(root: Path, git: str | None) -> Project:
    real = root.resolve()
    try:
        found = os.stat(real)  # noqa: PTH116 - for device and inode
        names = sorted(entry.name for entry in os.scandir(real))[:MAX_NAMES]
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
    """The oldest commit without a parent; none in a shallow clone, which does not have it."""
    shallow, roots = _git(root, _IS_SHALLOW, _ROOTS)
    return roots.split()[-1] if shallow == "false" and roots else None


def _git(root: Path, *commands: tuple[str, ...]) -> list[str]:
    """The output of each command, all run at once; empty where git fails."""
    given = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environment = given | {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    with ExitStack() as stack:
        try:
            running = [
                stack.enter_context(_start(("-C", str(root), *words), environment))
                for words in commands
            ]
            return [_output(process) for process in running]
        except OSError:
            return [""] * len(commands)


def _start(words: tuple[str, ...], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - fixed words, no shell
        ["git", *_QUIET, *words],  # noqa: S607 - the user's own git
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


def _output(process: subprocess.Popen[bytes]) -> str:
    try:
        output, _ = process.communicate(timeout=GIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return ""
    return output.decode("ascii", "replace").strip() if process.returncode == 0 else ""
