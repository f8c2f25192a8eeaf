"""Every file and folder of the working folders, for completing a path while it is typed.

What ignore files hide is left out, as everywhere. Reading is bounded like every walk, and belongs
into a thread. A query is a subsequence of a path; the best matches are those whose name begins with
it, and among alike ones those that changed last.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from heapq import nsmallest
from pathlib import Path
from threading import Event
from typing import NamedTuple

from recollect.tools.directory_walk import DirectoryWalk
from recollect.tools.ignored_files import refuse_hidden
from recollect.tools.safe_open import open_folder
from recollect.tools.tool import ToolFailed

MAX_QUERY = 200  # characters
_SLICE = 5_000  # paths between two looks at whether the answer is still wanted


class IndexedPath(NamedTuple):
    path: str  # from its root; a folder ends with a slash
    changed: int  # nanoseconds


def read_paths(roots: Sequence[Path], stop: Event) -> tuple[IndexedPath, ...]:
    """The paths below these folders, newest first; fewer if `stop` was set meanwhile."""
    found: dict[str, int] = {}
    for root in dict.fromkeys(roots):
        with suppress(ToolFailed, OSError):
            _read_root(root, roots, stop, found)
    paths = (IndexedPath(path, changed) for path, changed in found.items())
    return tuple(sorted(paths, key=lambda one: (-one.changed, one.path)))


def _read_root(root: Path, roots: Sequence[Path], stop: Event, found: dict[str, int]) -> None:
    with open_folder((root,), str(root)) as start:
        refuse_hidden(roots, str(root), start.path)
        for file in DirectoryWalk(start, roots):
            if stop.is_set():
                return
            try:
                changed = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False).st_mtime_ns
            except OSError:
                continue
            found.setdefault(file.path, changed)
            folder = file.path
            while "/" in folder:  # a folder is as new as its newest file
                folder = folder.rpartition("/")[0]
                if found.get(f"{folder}/", -1) >= changed:
                    break
                found[f"{folder}/"] = changed


class PathMatches(NamedTuple):
    query: str
    fitting: tuple[IndexedPath, ...]  # all that fit, for a longer query
    best: tuple[str, ...]


def match_paths(
    paths: Sequence[IndexedPath],
    query: str,
    stop: Event,
    *,
    limit: int = 8,
    before: PathMatches | None = None,
) -> PathMatches | None:
    """The paths that have the letters of the query in this order; None if `stop` was set. What a
    shorter query left is looked through instead of everything."""
    query = query[:MAX_QUERY].lower().removeprefix("./")
    if before is not None and query.startswith(before.query):
        paths = before.fitting
    if not query:
        return PathMatches(query, tuple(paths), tuple(one.path for one in paths[:limit]))
    # each letter after the nearest one before it: nothing is ever tried twice
    fits = re.compile("".join(f"[^{re.escape(c)}]*{re.escape(c)}" for c in query)).match
    fitting: list[IndexedPath] = []
    for start in range(0, len(paths), _SLICE):
        if stop.is_set():
            return None
        part = paths[start : start + _SLICE]
        fitting += [one for one in part if fits(one.path.lower())]
    best = nsmallest(limit, fitting, key=lambda one: (*_rank(one.path, query), -one.changed))
    return PathMatches(query, tuple(fitting), tuple(one.path for one in best))


def _rank(path: str, query: str) -> tuple[int, int]:
    """Smaller is better."""
    lower = path.lower()
    name = lower.rstrip("/").rpartition("/")[2]
    if lower.startswith(query) or name.startswith(query):
        return (0, len(path) if name == query else len(path) + 1_000)
    if query in name:
        return (1, len(path))
    return (2, len(path)) if query in lower else (3, len(path))
