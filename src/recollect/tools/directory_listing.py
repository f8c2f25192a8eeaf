"""Carries out `list_directory` and `glob`: what is in a folder, and which files a pattern means."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from recollect.tools.directory_walk import MAX_WALKED, DirectoryWalk
from recollect.tools.glob_pattern import GlobPattern, parse_glob
from recollect.tools.resolve_path import quote
from recollect.tools.safe_open import open_folder
from recollect.tools.tool import ToolFailed

MAX_SHOWN = 1_000  # names in a listing
MAX_FOUND = 500  # files that a glob shows


def list_folder(roots: Sequence[Path], path: str) -> str:
    """The text that lists a folder; `read_file` returns the same for a folder."""
    with open_folder(roots, path) as opened:
        with os.scandir(opened.descriptor) as entries:
            some = islice(entries, MAX_WALKED)
            found = sorted((not one.is_dir(follow_symlinks=False), one.name) for one in some)
            more = "more than " if next(entries, None) else ""
        lines = [
            _describe_entry(opened.descriptor, name, is_folder=not is_file)
            for is_file, name in found[:MAX_SHOWN]
        ]
    files = sum(is_file for is_file, _ in found)
    head = f"{quote(opened.path)}: {more}{len(found) - files:,} folders and {files:,} files"
    if len(found) > MAX_SHOWN:
        lines.append(f"[{len(found) - MAX_SHOWN:,} more are not shown; glob finds by pattern]")
    return "\n".join([head, *lines])


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
    case_sensitive: bool,  # noqa: FBT001 - the model's own parameter
) -> str:
    """The text that lists the files a pattern matches."""
    wanted = parse_pattern(pattern, ignore_case=not case_sensitive)
    found: list[tuple[int, str]] = []
    with open_folder(roots, path) as start:
        walk = DirectoryWalk(start, roots)
        for file in walk:
            if wanted.matches(file.path.split("/")):
                with suppress(OSError):
                    info = os.stat(file.name, dir_fd=file.folder, follow_symlinks=False)
                    found.append((info.st_mtime_ns, str(start.path / file.path)))
    note = f" ({walk.cut})" if walk.cut else ""
    if not found:
        deeper = "" if "/" in pattern else f"; `**/{quote(pattern)}` looks in every folder"
        return f"No file fits {quote(pattern)} in {quote(start.path)}{note}{deeper}."
    found.sort(key=lambda item: (-item[0], item[1]))
    lines = [quote(name) for _, name in found[:MAX_FOUND]]
    if len(found) > MAX_FOUND:
        rest = len(found) - MAX_FOUND
        lines.append(f"[{rest:,} older ones are not shown; use a narrower pattern or path]")
    count = f"{len(found):,} file{'s' if len(found) > 1 else ''}"
    where = f"{quote(pattern)} in {quote(start.path)}"
    return "\n".join([f"{count} fit {where}, newest first{note}:", *lines])
