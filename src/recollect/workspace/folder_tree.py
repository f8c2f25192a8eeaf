"""The folder structure a model is shown: breadth-first, bounded, the same for the same folders.

At most `limit` items, in alphabetical order. Ignored folders, links to folders, and folders that
nobody looked into any more are shown as `name/...`; ignored files are left out; `...` stands where
a folder was cut. What cannot be read is skipped. However large, deep or circular a tree is, no
more than `MAX_LOOKS` names of it are looked at.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

import msgspec

from recollect.workspace.ignore_files import IGNORE_FILES, IgnoreRules, read_ignore_rules
from recollect.workspace.untrusted_text import one_line

MAX_ITEMS = 200
MAX_LOOKS = 10_000  # names of one tree; of one folder at most half of them


class _Node(msgspec.Struct):
    """A folder or a file while the tree is being built."""

    name: str
    below: list[_Node] = msgspec.field(default_factory=list)


class _Waiting(msgspec.Struct, frozen=True):
    node: _Node
    names: tuple[str, ...]  # from the top of the ignore rules
    ignoring: IgnoreRules


class _Entry(msgspec.Struct, frozen=True):
    name: str
    folder: bool
    link: bool


def render_folder_tree(
    folder: Path, *, limit: int = MAX_ITEMS, ignore_files: tuple[str, ...] = IGNORE_FILES
) -> str:
    """The tree of a folder, its own path first."""
    shown = one_line(str(folder), 4_000)
    try:
        ignoring, names = read_ignore_rules(folder, ignore_files)
    except (OSError, RuntimeError, ValueError):
        return f"{shown}/ (cannot be read)"
    root = _Node(shown)
    looked = _build(_Waiting(root, tuple(names), ignoring), limit)
    return f"{shown}/ (cannot be read)" if not looked else "\n".join(_lines(root))


def _build(first: _Waiting, limit: int) -> bool:
    """Fill the tree; false when not even its first folder could be read."""
    waiting, room, looks = deque([first]), limit, MAX_LOOKS
    readable = True
    while waiting:
        at = waiting.popleft()
        entries, whole = (
            _entries(at.ignoring.top.joinpath(*at.names), min(looks, MAX_LOOKS // 2))
            if room > 0 and looks > 0
            else (None, False)
        )
        if entries is None:
            readable = readable and at is not first
            at.node.name = _unseen(at.node.name)
            continue
        looks -= len(entries)
        if at is not first:
            at = msgspec.structs.replace(at, ignoring=at.ignoring.enter_folder(at.names))
        room -= _fill(at, entries, room, waiting, whole=whole)
    return readable or limit <= 0


def _fill(
    at: _Waiting, entries: list[_Entry], room: int, waiting: deque[_Waiting], *, whole: bool
) -> int:
    """Put the entries of one folder into the tree; how many items that were."""
    used = 0
    for entry in entries:
        names = (*at.names, entry.name)
        ignored = at.ignoring.ignores(names, folder=entry.folder)
        if ignored and not entry.folder:
            continue
        if used == room:
            whole = False
            break
        used += 1
        node = _Node(one_line(entry.name) + ("/" if entry.folder else ""))
        at.node.below.append(node)
        if ignored or (entry.folder and entry.link):
            node.name = _unseen(node.name)
        elif entry.folder:
            waiting.append(_Waiting(node, names, at.ignoring))
    if not whole:
        at.node.below.append(_Node("..."))
    return used


def _unseen(name: str) -> str:
    return name.rstrip("/") + "/..."


def _entries(folder: Path, limit: int) -> tuple[list[_Entry] | None, bool]:
    """The names in a folder in order, and whether those are all; nothing when it is unreadable."""
    found: list[_Entry] = []
    try:
        with os.scandir(folder) as scan:
            for entry in scan:
                if len(found) == limit:
                    break
                found.append(_entry(entry))
            else:
                limit += 1
    except OSError:
        return None, False
    found.sort(key=lambda entry: (entry.name.casefold(), entry.name))
    return found, len(found) < limit


def _entry(entry: os.DirEntry[str]) -> _Entry:
    try:
        return _Entry(entry.name, entry.is_dir(), entry.is_symlink())
    except OSError:  # a link in a circle
        return _Entry(entry.name, folder=False, link=True)


def _lines(root: _Node) -> list[str]:
    lines = [root.name if root.name.endswith("...") else root.name.rstrip("/") + "/"]
    stack = [(node, "", number == 0) for number, node in enumerate(reversed(root.below))]
    while stack:
        node, indent, last = stack.pop()
        lines.append(f"{indent}{'└───' if last else '├───'}{node.name}")
        deeper = indent + ("    " if last else "│   ")
        stack += [(below, deeper, n == 0) for n, below in enumerate(reversed(node.below))]
    return lines
