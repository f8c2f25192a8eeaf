"""The folder tree that a model is shown: breadth-first, bounded, the same for the same folders.

At most `limit` items, in alphabetical order. Ignored folders, links to folders, and folders beyond
the limit are shown as `name/...`; ignored files and links to them are left out; `...` marks a
folder that was cut. Unreadable folders are skipped. However large, deep or circular a tree is, at
most `MAX_LOOKS` of its names are read; of a folder with more than that none is shown, since any
choice would be chance.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import msgspec

from recollect.workspace.hidden_paths import IgnoreRules, find_link_hider, read_ignore_rules
from recollect.workspace.untrusted_text import one_line

MAX_ITEMS = 200
MAX_LOOKS = 100_000  # names of one tree


class _Node(msgspec.Struct):
    """A folder or a file while the tree is being built."""

    name: str
    below: list[_Node] = msgspec.field(default_factory=list)


class _PendingFolder(msgspec.Struct, frozen=True):
    node: _Node
    names: tuple[str, ...]  # from the top of the ignore rules
    rules: IgnoreRules


_Item: TypeAlias = tuple[str, bool, bool]  # its name, whether it is a folder, whether a link


def render_folder_tree(
    folder: Path, *, limit: int = MAX_ITEMS, roots: Collection[Path] = ()
) -> str:
    """The tree of a folder; its own path is the first line. The ignore files of the root around it
    count."""
    shown = one_line(str(folder), 4_000)
    try:
        rules, names = read_ignore_rules(folder, roots)
    except (OSError, RuntimeError, ValueError):
        return f"{shown}/ (cannot be read)"
    root = _Node(shown)
    readable = _build(_PendingFolder(root, tuple(names), rules), limit)
    return "\n".join(_lines(root)) if readable else f"{shown}/ (cannot be read)"


def _build(first: _PendingFolder, limit: int) -> bool:
    """Fill the tree; false if even its first folder cannot be read."""
    pending, room, looks = deque([first]), limit, MAX_LOOKS
    readable = True
    while pending:
        at = pending.popleft()
        folder = at.rules.top.joinpath(*at.names)
        items, read = _items(folder, looks) if room > 0 and looks > 0 else (None, 0)
        looks -= read
        if items is None:
            readable = readable and at is not first
            at.node.name = _unlisted(at.node.name)
            continue
        if at is not first:
            at = msgspec.structs.replace(at, rules=at.rules.enter_folder(at.names))
        room -= _fill(at, items, room, pending, complete=len(items) == read)
    return readable or limit <= 0


def _fill(
    at: _PendingFolder,
    items: list[_Item],
    room: int,
    pending: deque[_PendingFolder],
    *,
    complete: bool,
) -> int:
    """Put the items of one folder into the tree; returns how many."""
    used = 0
    for name, is_folder, is_link in items:
        names = (*at.names, name)
        ignored = at.rules.ignores(names, folder=is_folder)
        if is_link and not ignored:
            top = at.rules.top
            ignored = find_link_hider(top.joinpath(*names), (top,)) is not None
        if ignored and not is_folder:
            continue
        if used == room:
            complete = False
            break
        used += 1
        node = _Node(one_line(name) + ("/" if is_folder else ""))
        at.node.below.append(node)
        if ignored or (is_folder and is_link):
            node.name = _unlisted(node.name)
        elif is_folder:
            pending.append(_PendingFolder(node, names, at.rules))
    if not complete:
        at.node.below.append(_Node("..."))
    return used


def _unlisted(name: str) -> str:
    return name.rstrip("/") + "/..."


def _items(folder: Path, limit: int) -> tuple[list[_Item] | None, int]:
    """A folder's items in order, none of more than `limit`, and how many names were read; None if
    it is unreadable."""
    try:
        with os.scandir(folder) as scan:
            found = [_item(entry) for entry in islice(scan, limit + 1)]
    except OSError:
        return None, 0
    if len(found) > limit:
        return [], len(found)
    return sorted(found, key=lambda item: (item[0].casefold(), item[0])), len(found)


def _item(entry: os.DirEntry[str]) -> _Item:
    try:
        return entry.name, entry.is_dir(), entry.is_symlink()
    except OSError:  # a loop of links
        return entry.name, False, True


def _lines(root: _Node) -> list[str]:
    lines = [root.name if root.name.endswith("...") else root.name.rstrip("/") + "/"]
    stack = [(node, "", number == 0) for number, node in enumerate(reversed(root.below))]
    while stack:
        node, indent, last = stack.pop()
        lines.append(f"{indent}{'└───' if last else '├───'}{node.name}")
        deeper = indent + ("    " if last else "│   ")
        stack += [(below, deeper, n == 0) for n, below in enumerate(reversed(node.below))]
    return lines
