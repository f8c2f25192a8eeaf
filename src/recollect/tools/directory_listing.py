"""Carries out `list_directory` and `glob`: what is in a folder, and which files a pattern means."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from heapq import nsmallest
from itertools import islice
from pathlib import Path

from recollect.tools.at_path import drop_pattern_sign
from recollect.tools.directory_walk import DirectoryWalk
from recollect.tools.glob_pattern import GlobPattern, parse_glob
from recollect.tools.ignored_files import LeftOut, refuse_hidden
from recollect.tools.resolve_path import quote
from recollect.tools.safe_open import CheckedFile, open_folder
from recollect.tools.tool import ToolFailed
from recollect.workspace.hidden_paths import IgnoreSource, find_link_hider, read_ignore_rules

MAX_SHOWN = 1_000  # names in a listing
MAX_LISTED = 1_000_000  # names of a folder that a listing looks at
MAX_FOUND = 500  # files that a glob shows


def list_folder(roots: Sequence[Path], path: str, *, respect_git_ignore: bool = True) -> str:
    """The text that lists a folder; `read_file` returns the same for a folder."""
    with open_folder(roots, path) as opened:
        refuse_hidden(roots, path, opened.path)
        scan = _FolderScan(opened, roots, use_git=respect_git_ignore)
        # only those that are shown are kept and looked at more closely
        first = nsmallest(MAX_SHOWN, scan)
        lines = [
            _describe_entry(opened.descriptor, name, is_folder=not is_file)
            for is_file, name in first
        ]
    folders, files = scan.folders, scan.files
    head = f"{quote(opened.path)}: {scan.more}{folders:,} folders and {files:,} files"
    if folders + files > MAX_SHOWN:
        rest = folders + files - MAX_SHOWN
        lines.append(f"[{rest:,} more are not shown; glob finds by pattern]")
    if note := scan.left_out.note():
        lines.append(f"[{note}]")
    return "\n".join([head, *lines])


class _FolderScan:
    """The names in a folder, with whether each is a file, and counts of what has been seen."""

    def __init__(self, opened: CheckedFile, roots: Sequence[Path], *, use_git: bool) -> None:
        self._descriptor = opened.descriptor
        self._folder, self._roots, self._use_git = opened.path, roots, use_git
        self._rules, self._names = read_ignore_rules(opened.path, roots, use_git=use_git)
        self.folders = self.files = 0
        self.more = ""
        self.left_out = LeftOut()

    def __iter__(self) -> Iterator[tuple[bool, str]]:
        with os.scandir(self._descriptor) as entries:
            for entry in islice(entries, MAX_LISTED):
                is_folder = entry.is_dir(follow_symlinks=False)
                if hider := self._find_hider(entry, is_folder=is_folder):
                    self.left_out.add(hider)
                    continue
                self.folders += is_folder
                self.files += not is_folder
                yield not is_folder, entry.name
            self.more = "more than " if next(entries, None) else ""

    def _find_hider(self, entry: os.DirEntry[str], *, is_folder: bool) -> IgnoreSource | None:
        """What hides a name, or the file that a link of this name leads to."""
        hider = self._rules.hider((*self._names, entry.name), folder=is_folder)
        if hider is None and entry.is_symlink():
            link = self._folder / entry.name
            return find_link_hider(link, self._roots, use_git=self._use_git)
        return hider


def _describe_entry(folder: int, name: str, *, is_folder: bool) -> str:
    if is_folder:
        return f"{quote(name)}/"
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(info.st_mode):
            return f"{quote(name)} -> {quote(os.readlink(name, dir_fd=folder))}"
    except OSError:
        return quote(name)
    if not stat.S_ISREG(info.st_mode):
        return f"{quote(name)} (not a regular file)"
    return f"{quote(name)} ({info.st_size:,} bytes)"


def parse_pattern(pattern: str, *, ignore_case: bool = False) -> GlobPattern:
    """Parse a glob that a model wrote; a `ToolFailed` says what is wrong with it."""
    if pattern.startswith("/") or ".." in pattern.split("/"):
        raise ToolFailed("a pattern is relative to a folder; name the folder in `path`")
    if not pattern.strip("/."):
        raise ToolFailed("the pattern is empty; `**/*` means all files")
    try:
        return parse_glob(pattern, ignore_case=ignore_case)
    except ValueError as error:
        raise ToolFailed(f"{quote(pattern)}: {error}") from None


def find_files(
    roots: Sequence[Path],
    pattern: str,
    path: str,
    *,
    case_sensitive: bool = False,
    respect_git_ignore: bool = True,
) -> str:
    """The text that lists the files a pattern matches."""
    pattern = drop_pattern_sign(pattern, roots[0] / path, roots)
    wanted = parse_pattern(pattern, ignore_case=not case_sensitive)

    def fits(found_path: str) -> bool:
        return wanted.matches(found_path.split("/"))

    found: list[tuple[int, str]] = []
    with open_folder(roots, path) as start:
        refuse_hidden(roots, path, start.path)
        walk = DirectoryWalk(start, roots, use_git=respect_git_ignore, counts=fits)
        for file in walk:
            if fits(file.path):
                with suppress(OSError):
                    info = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False)
                    found.append((info.st_mtime_ns, str(start.path / file.path)))
    note = f" ({walk.cut})" if walk.cut else ""
    left_out = [f"[{said}]"] if (said := walk.left_out.note()) else []
    if not found:
        deeper = "" if "/" in pattern else f"; `**/{quote(pattern)}` looks in every folder"
        none = f"No file fits {quote(pattern)} in {quote(start.path)}{note}{deeper}."
        return "\n".join([none, *left_out])
    found.sort(key=lambda item: (-item[0], item[1]))
    lines = [quote(name) for _, name in found[:MAX_FOUND]]
    if len(found) > MAX_FOUND:
        rest = len(found) - MAX_FOUND
        lines.append(f"[{rest:,} older ones are not shown; use a narrower pattern or path]")
    count = f"{len(found):,} file{'s' if len(found) > 1 else ''}"
    where = f"{quote(pattern)} in {quote(start.path)}"
    head = f"{count} fit {where}, newest first{note}:"
    return "\n".join([head, *lines, *left_out])
