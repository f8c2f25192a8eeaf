"""Surveys a workspace before a command: what in it decides what runs later.

That are the protected names in each project's top folder (a root, or a folder with a repository),
the settings and hooks of every repository, of submodules and linked working trees too, and the
programs inside the workspace that git's settings and hooks name; and recollect itself, if it lies
there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import NamedTuple

from recollect.execution.git_folders import (
    DECIDING_NAMES,
    GitFolders,
    find_git_folders,
    programs_in_settings,
)
from recollect.execution.guarded_names import GuardedName, Placeholder
from recollect.execution.landlock import is_below
from recollect.execution.protected_files import list_protected
from recollect.execution.saved_files import SavedFiles, save_files

# If our own code lies in the workspace, what this command writes would start the next one.
_OWN_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_MAX_PROJECTS = 50  # whose settings are read: each takes git some milliseconds
_PLACEHOLDERS: dict[str, Placeholder] = {
    "config": "empty",
    "config.worktree": "empty",
    "hooks": "folder",
    "commondir": "itself",
}


class WorkspaceSurvey(NamedTuple):
    projects: tuple[str, ...]
    git: GitFolders
    existing: tuple[str, ...]  # protected paths
    absent: tuple[str, ...]  # paths that git's settings name and that do not exist
    at_home: tuple[str, ...]  # protected paths of the home, if it lies in the workspace


class WorkspaceBaseline(NamedTuple):
    """A workspace as it was before any command that still runs."""

    survey: WorkspaceSurvey
    saved: SavedFiles
    # Folders above secrets, which all commands that run at the same time hold. One that another
    # command does not hold it could exchange for a link while it is being mounted.
    above: tuple[str, ...] = ()


_LOCK = threading.Lock()
_running: dict[tuple[str, ...], tuple[WorkspaceBaseline, int]] = {}  # with how many commands


@contextmanager
def share_baseline(
    roots: tuple[str, ...],
    home: str,
    programs: tuple[str, ...] = (),
    above: tuple[str, ...] = (),
) -> Iterator[WorkspaceBaseline]:
    """All commands that run at the same time are measured by what was there before the first:
    else one of them would take for the user's what another has just written."""
    with _LOCK:
        baseline, count = _running.get(roots) or (
            _read_baseline(roots, home, programs)._replace(above=above),
            0,
        )
        _running[roots] = (baseline, count + 1)
    try:
        yield baseline
    finally:
        with _LOCK:
            count = _running[roots][1] - 1
            if count:
                _running[roots] = (baseline, count)
            else:
                del _running[roots]


def _read_baseline(
    roots: tuple[str, ...], home: str, programs: tuple[str, ...]
) -> WorkspaceBaseline:
    survey = _survey_workspace(roots, home, programs)
    repositories = (*survey.git.folders, *survey.git.links)
    return WorkspaceBaseline(survey, save_files(survey.existing, repositories))


def _survey_workspace(
    roots: tuple[str, ...], home: str, programs: tuple[str, ...]
) -> WorkspaceSurvey:
    git = find_git_folders(roots)
    trees = (os.path.dirname(path) for path in (*git.folders, *git.links) if path.endswith("/.git"))
    homes = [home] if any(is_below(home, root) for root in roots) else []
    projects = tuple(dict.fromkeys((*roots, *homes, *trees)))
    found = [path for project in projects for path in list_protected(project)]
    found += [f"{folder}/{name}" for folder in git.folders for name in DECIDING_NAMES]
    named = [
        path
        for project in projects[:_MAX_PROJECTS]
        for path in _read_programs(project, roots, _marks(project))
    ]
    named += [path for path in programs if any(is_below(path, root) for root in roots)]
    named += [_OWN_PACKAGE] if any(is_below(_OWN_PACKAGE, root) for root in roots) else []
    named += [target for path in found for target in _link_targets(path, roots)]
    existing = filter(os.path.lexists, (*found, *git.links, *named))
    absent = (path for path in named if not os.path.lexists(path))
    at_home = (path for folder in homes for path in list_protected(folder, at_home=True))
    kept = tuple(dict.fromkeys(existing))
    return WorkspaceSurvey(
        projects,
        git,
        kept,
        tuple(dict.fromkeys(absent)),
        tuple(path for path in at_home if path not in kept),
    )


def names_to_hold(
    root: str, survey: WorkspaceSurvey, guarded: Iterable[GuardedName]
) -> list[GuardedName]:
    """What a mount or a placeholder holds below a root while a command runs."""
    names = {name.path: name for name in guarded}
    for folder in survey.git.folders:
        if folder.startswith(f"{root}/"):
            for name, placeholder in _PLACEHOLDERS.items():
                path = f"{folder.removeprefix(f'{root}/')}/{name}"
                names.setdefault(path, GuardedName(path, placeholder))
    for path in (*survey.existing, *survey.absent, *survey.at_home):
        if path.startswith(f"{root}/"):
            below = path.removeprefix(f"{root}/")
            names.setdefault(below, GuardedName(below, "folder"))
    return list(names.values())


def _link_targets(path: str, roots: tuple[str, ...]) -> Iterator[str]:
    """Where a protected path leads inside the workspace, or what is directly below it: a change
    there changes what is read here."""
    below: list[str] = []
    if not os.path.islink(path):
        with suppress(OSError):
            below = [f"{path}/{name}" for name in os.listdir(path)]
    for link in filter(os.path.islink, (path, *below)):
        target = os.path.realpath(link)
        if any(target.startswith(f"{root}/") for root in roots):
            yield target


@lru_cache(maxsize=256)
def _read_programs(project: str, roots: tuple[str, ...], marks: tuple[int, ...]) -> tuple[str, ...]:
    """`marks` differ when the settings do."""
    del marks
    return tuple(programs_in_settings(project, roots))


def _marks(project: str) -> tuple[int, ...]:
    home = os.path.expanduser("~")
    files = (f"{project}/.git", f"{project}/.git/config", f"{home}/.gitconfig")
    marks = []
    for file in files:
        with suppress(OSError):
            marks += [os.stat(file).st_mtime_ns, os.stat(file).st_size]
    return tuple(marks)
