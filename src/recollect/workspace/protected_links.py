"""Other names of a file: the links in its project through which programs may read it.

Whoever writes `docs/agents.md` also writes `AGENTS.md` if that is a link to it, and a hook is often
a link to a script. Links are looked for where programs look for protected names: in the folders
above the file, and inside protected folders. The search is bounded in names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from recollect.workspace.protected_names import find_protected, holds_protected

MAX_NAMES = 20_000  # of all folders that are searched for one file
_HOOKS = ".git/hooks"  # of a repository only this: the rest is large, and git's own


def find_linked_names(path: Path, root: Path) -> tuple[Path, ...]:
    """The links below a root, named from it, that lead to this path or to a folder above it. Both
    are given with links resolved."""
    found = []
    for link in islice(_links_around(path, root), MAX_NAMES):
        if link is not None and path.is_relative_to(os.path.realpath(link)):
            beyond = path.relative_to(os.path.realpath(link))
            found.append(link.relative_to(root) / beyond)
    return tuple(found)


def _links_around(path: Path, root: Path) -> Iterator[Path | None]:
    for folder in path.parents:
        if not folder.is_relative_to(root):
            return
        yield from _links_in(folder, root, around=True)
        yield from _links_in(folder / _HOOKS, root)


def _links_in(folder: Path, root: Path, *, around: bool = False) -> Iterator[Path | None]:
    """The links in a folder, and in folders inside it that are protected; None for other names."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            place = Path(entry.path)
            if entry.is_symlink():
                yield place
                continue
            yield None
            if not entry.is_dir(follow_symlinks=False):
                continue
            named = place.relative_to(root).as_posix()
            protected = find_protected(named)
            within = protected is not None and protected.in_sandbox
            if within or (around and holds_protected(named)):
                yield from _links_in(place, root)
